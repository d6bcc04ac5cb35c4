"""What is timed: this package, its peers, and matrix products."""

import dataclasses
import sys

from benchmarks import _training_processes

OURS, PEER, EXTRA, PRODUCT = "ours", "peer", "extra", "product"
KERAS_HUB, TORCH = "KerasHub", "transformers"
TORCH_ALL = "transformers, head at all tokens"
WIDTHS = {"tiny": 256}  # of the matrix product
DEFAULT_WIDTH = 2048


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
        return _training_processes.Worker(self.module, {**group, **self.job}, self.python)


def systems_for(settings, size, torch_python):
    """Returns the systems of a group, ours first.

    Args:
        settings: a `Settings`.
        size: name of the size.
        torch_python: interpreter with torch, or `None`.
    """
    keras_module, torch_module = "benchmarks._training_keras", "benchmarks._training_torch"
    found = [
        System(position, OURS, keras_module, {"position": position, "pipeline": False})
        for position in settings.positions
    ]
    if settings.peers:
        hub_job = {"position": None, "pipeline": False}
        found.append(System(KERAS_HUB, PEER, keras_module, hub_job))
    product = {"width": WIDTHS.get(size, DEFAULT_WIDTH)}
    libraries = {"tensorflow": sys.executable}
    if torch_python is not None:
        found.append(System(TORCH, PEER, torch_module, {"head": "masked"}, torch_python))
        found.append(System(TORCH_ALL, EXTRA, torch_module, {"head": "all"}, torch_python))
        libraries["torch"] = torch_python
    for library, python in libraries.items():
        job = {**product, "library": library}
        label = f"product by {library}"
        found.append(System(label, PRODUCT, "benchmarks._training_matmul", job, python))
    return found


def pipeline_system(settings):
    """Returns the system that trains on real rows and says how long it waited for them."""
    job = {"position": settings.positions[0], "pipeline": True}
    return System("input wait", EXTRA, "benchmarks._training_keras", job)
