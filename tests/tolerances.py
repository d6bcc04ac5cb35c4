"""How near float64 results come on each backend."""

from training.check.promise import in_float64

__all__ = ["in_float64"]
