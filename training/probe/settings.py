"""The settings of `training.probe`."""

import dataclasses
import functools

from training.command.kinds import values_of
from training.command.settings import setting
from training.command.variant import parse
from training.machine import settings as machine
from training.probe.checks import find_problems

# What does not change the numbers of a run, or is said otherwise in its record.
_NO_MATTER = ("positions", "seeds", "out", "strategy", "xla", "lengths", "max_sequence_length")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.probe`."""

    positions: tuple = setting(
        (),
        "Positional methods: names of `keras-tupe methods`, NAME:option=value, or .py files that "
        "define one.",
    )
    tasks: tuple = setting((), "Tasks that a run learns. Default: all.")
    seeds: int = setting(5, "Runs of each method, >= 1; their seeds are 0, 1, ...")
    out: str | None = setting(
        None, "Folder of the runs and the report; the same command continues what is there."
    )
    # === Rows ===
    length: int = setting(
        32, "Tokens of the longest row of training, even, >= 24; the shortest has half as many."
    )
    lengths: tuple = setting(
        ("1x", "2x", "4x"),
        "Lengths of the rows of the test: tokens, an even number, or times --length, such as 2x.",
        texts=True,
    )
    max_sequence_length: int | None = setting(
        None, "Rows of position tables, >= the longest row. Default: as many as that."
    )
    groups: int = setting(
        16,
        "Groups of rows of the test, >= 1, of each task and length; a group has the same tokens.",
    )
    members: int = setting(8, "Rows of a group, orders of its tokens, >= 2.")
    # === Model ===
    num_layers: int = setting(2, "Encoder blocks, >= 1.")
    hidden_dim: int = setting(64, "Width of the hidden states, a multiple of --num-heads.")
    num_heads: int = setting(4, "Attention heads, >= 1.")
    initializer_range: float = setting(0.1, "Standard deviation of new weights, > 0.")
    # === Training ===
    steps: int = setting(2000, "Optimizer steps, >= 1.")
    batch_size: int = setting(32, "Rows of a step, all tasks and devices together, >= 1.")
    learning_rate: float = setting(3e-3, "Highest learning rate, > 0; it falls linearly to zero.")
    warmup_share: float = setting(
        0.1, "Share of the steps in which the learning rate rises, 0 to below 1."
    )
    weight_decay: float = setting(0.01, "Factor of the decoupled weight decay, >= 0.")
    beta_2: float = setting(0.98, "Decay of the second moment, 0 to below 1.")
    clip_norm: float = setting(1.0, "Largest norm of all gradients together, > 0.")
    # === Machine ===
    strategy: str = machine.strategy()
    precision: str = machine.precision()
    xla: str = setting("on", machine.xla().metadata["help"])
    micro_batches: int = machine.micro_batches()
    remat: bool = machine.remat()
    deterministic: bool = machine.deterministic()

    def problems(self):
        """Returns a sentence for each mistake."""
        return find_problems(self)

    @functools.cached_property
    def variants(self):
        """The `Variant` of each method, in the order of `--positions`."""
        return [parse(text) for text in values_of(self.positions)]

    @property
    def task_names(self):
        """Names of the tasks, sorted: their order is that of their tokens."""
        from training.probe.tasks import TASKS

        return sorted(self.tasks or TASKS)

    @functools.cached_property
    def test_lengths(self):
        """Tokens of the rows of the test, ascending."""
        found = {
            int(text[:-1]) * self.length if text.endswith("x") else int(text)
            for text in values_of(self.lengths)
        }
        return sorted(found)

    @property
    def table_length(self):
        """Rows of position tables."""
        return self.max_sequence_length or max(self.test_lengths[-1], self.length)

    def identity(self):
        """Returns what a run's numbers depend on besides method and seed, JSON values."""
        values = dataclasses.asdict(self)
        return {
            **{name: value for name, value in values.items() if name not in _NO_MATTER},
            "tasks": self.task_names,
            "lengths": self.test_lengths,
            "max_sequence_length": self.table_length,
        }
