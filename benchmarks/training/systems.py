"""The systems that are timed: this package, its peers, and matrix products."""

import dataclasses
import sys

from benchmarks.harness.process import Worker

OURS, PEER, EXTRA, PRODUCT = "ours", "peer", "extra", "product"
KERAS_HUB, TORCH = "KerasHub", "transformers"
TORCH_ALL = "transformers, head at all tokens"
WIDTHS = {"tiny": 256}  # of the matrix product
DEFAULT_WIDTH = 2048
KERAS_STEPS = "benchmarks.training.keras_steps"
TORCH_STEPS = "benchmarks.training.torch_steps"
PRODUCTS = "benchmarks.training.products"


@dataclasses.dataclass(frozen=True)
class System:
    """One process of a group.

    Attributes:
        label: its name in the table.
        kind: `OURS`, `PEER` (what ratios are to the faster of), `EXTRA` or `PRODUCT`.
        module: what the process runs.
        job: what is peculiar to it.
        python: the interpreter.
    """

    label: str
    kind: str
    module: str
    job: dict
    python: str = sys.executable

    def start(self, group):
        """Starts the process with its own job and the group's; see `Worker`."""
        return Worker(self.module, {**group, **self.job}, self.python)


def systems_for(settings, size, torch_python):
    """Returns the systems of a group, ours first.

    Args:
        settings: a `Settings`.
        size: name of the size.
        torch_python: interpreter with torch, or `None`.
    """
    found = [
        System(position, OURS, KERAS_STEPS, {"position": position, "pipeline": False})
        for position in settings.positions
    ]
    if settings.peers:
        hub_job = {"position": None, "pipeline": False}
        found.append(System(KERAS_HUB, PEER, KERAS_STEPS, hub_job))
    product = {"width": WIDTHS.get(size, DEFAULT_WIDTH)}
    libraries = {"tensorflow": sys.executable}
    if torch_python is not None:
        found.append(System(TORCH, PEER, TORCH_STEPS, {"head": "masked"}, torch_python))
        found.append(System(TORCH_ALL, EXTRA, TORCH_STEPS, {"head": "all"}, torch_python))
        libraries["torch"] = torch_python
    for library, python in libraries.items():
        job = {**product, "library": library}
        label = f"product by {library}"
        found.append(System(label, PRODUCT, PRODUCTS, job, python))
    return found


def pipeline_system(settings):
    """Returns the system that trains on real rows and says how long it waited for them."""
    job = {"position": settings.positions[0], "pipeline": True}
    return System("input wait", EXTRA, KERAS_STEPS, job)
