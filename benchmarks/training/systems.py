"""The systems that are timed: this package, its peers, and matrix products."""

import dataclasses
import sys

from benchmarks.harness.process import Worker

OURS, PEER, EXTRA, PRODUCT = "ours", "peer", "extra", "product"
KERAS_HUB, TORCH = "KerasHub", "transformers"  # by themselves, nothing compiled
TORCH_ALL = "transformers, head at all tokens"
WIDTHS = {"tiny": 256}  # of the matrix product
DEFAULT_WIDTH = 2048
TRAINER_STEPS = "benchmarks.training.trainer_steps"
HUB_STEPS = "benchmarks.training.keras_hub_steps"
TORCH_STEPS = "benchmarks.training.torch_steps"
PRODUCTS = "benchmarks.training.products"
TENSORFLOW, JAX, TORCH_LIBRARY = "tensorflow", "jax", "torch"


@dataclasses.dataclass(frozen=True)
class Peer:
    """A way in which the users of another library train.

    Attributes:
        label: its name in the table.
        module: what its process runs.
        library: what computes: `TENSORFLOW`, `JAX` or `TORCH_LIBRARY`.
        job: what is peculiar to it.
    """

    label: str
    module: str
    library: str
    job: dict


# By the names that `--peers` takes; in the order in which they get memory where it is scarce.
PEERS = {
    "keras_hub": Peer(KERAS_HUB, HUB_STEPS, TENSORFLOW, {"jit_compile": False}),
    "transformers": Peer(TORCH, TORCH_STEPS, TORCH_LIBRARY, {"head": "masked", "compile": False}),
    "keras_hub_xla": Peer(f"{KERAS_HUB}, XLA", HUB_STEPS, TENSORFLOW, {"jit_compile": True}),
    "transformers_compiled": Peer(
        f"{TORCH}, torch.compile", TORCH_STEPS, TORCH_LIBRARY, {"head": "masked", "compile": True}
    ),
    "keras_hub_jax": Peer(f"{KERAS_HUB}, JAX", HUB_STEPS, JAX, {"jit_compile": True}),
}


@dataclasses.dataclass(frozen=True)
class System:
    """One process of a group.

    Attributes:
        label: its name in the table.
        kind: `OURS`, `PEER` (what ratios are to the fastest of), `EXTRA` or `PRODUCT`.
        module: what the process runs.
        job: what is peculiar to it.
        python: the interpreter.
        backend: what Keras computes with, if it is there.
    """

    label: str
    kind: str
    module: str
    job: dict
    python: str = sys.executable
    backend: str = TENSORFLOW

    def start(self, group):
        """Starts the process with its own job and the group's; see `Worker`."""
        environment = {"KERAS_BACKEND": self.backend}
        return Worker(self.module, {**group, **self.job}, self.python, environment)


def systems_for(settings, size, pythons):
    """Returns the systems of a group, ours first.

    Args:
        settings: a `Settings`.
        size: name of the size.
        pythons: dictionary: library -> interpreter that has it; of those that are there.
    """
    found = []
    for position in settings.positions_of(size):
        for xla in settings.xla:
            job = {"position": position, "pipeline": False, "xla": xla}
            label = position if xla == settings.xla[0] else f"{position}, xla {xla}"
            kind = OURS if xla == settings.xla[0] else EXTRA
            found.append(System(label, kind, TRAINER_STEPS, job))
    for name in settings.peer_names:
        peer = PEERS[name]
        if peer.library in pythons:
            backend = peer.library if peer.library != TORCH_LIBRARY else TENSORFLOW
            system = System(peer.label, PEER, peer.module, peer.job, pythons[peer.library], backend)
            found.append(system)
            if peer.label == TORCH and settings.has_extras(size):
                job = {**peer.job, "head": "all"}
                found.append(dataclasses.replace(system, label=TORCH_ALL, kind=EXTRA, job=job))
    product = {"width": WIDTHS.get(size, DEFAULT_WIDTH)}
    for library in (TENSORFLOW, TORCH_LIBRARY):
        if library in pythons:
            job = {**product, "library": library}
            label = f"product by {library}"
            found.append(System(label, PRODUCT, PRODUCTS, job, pythons[library]))
    return found


def pipeline_system(settings):
    """Returns the system that trains on real rows and says how long it waited for them."""
    job = {"position": settings.positions[0], "pipeline": True, "xla": settings.xla[0]}
    return System("input wait", EXTRA, TRAINER_STEPS, {**job, "steps_per_turn": 1})
