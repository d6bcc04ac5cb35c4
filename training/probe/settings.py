"""The settings of `training.probe`."""

import dataclasses
import functools

from training.command.checks import COUNT, NOT_NEGATIVE, POSITIVE, SHARE
from training.command.kinds import values_of
from training.command.settings import counting, setting
from training.command.variant import parse
from training.machine import settings as machine
from training.probe.checks import find_problems


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.probe`."""

    positions: tuple = setting(
        (),
        "Positional methods: names of `keras-tupe methods`, NAME:option=value, or .py files that "
        "define one.",
        counts=False,
    )
    tasks: tuple = setting((), "Tasks that a run learns. Default: all.")
    seeds: int = setting(
        5, "Runs of each method; their seeds are 0, 1, ...", rule=COUNT, counts=False
    )
    out: str | None = setting(
        None,
        "Folder of the runs and the report; the same command continues what is there.",
        counts=False,
    )
    # === Rows ===
    length: int = setting(
        32,
        "Tokens of the longest row of training; the shortest has half as many.",
        rule=("an even number >= 24", lambda value: value >= 24 and value % 2 == 0),
    )
    lengths: tuple = setting(
        ("1x", "2x", "4x"),
        "Lengths of the rows of the test: tokens, an even number, or times --length, such as 2x.",
        texts=True,
        counts=False,
    )
    max_sequence_length: int | None = setting(
        None,
        "Rows of position tables, >= the longest row. Default: as many as that.",
        rule=COUNT,
        counts=False,
    )
    groups: int = setting(
        16,
        "Groups of rows of the test, of each task and length; a group has the same tokens.",
        rule=COUNT,
    )
    members: int = setting(
        8,
        "Rows of a group, orders of its tokens.",
        rule=("an integer >= 2", lambda value: value >= 2),
    )
    # === Model ===
    num_layers: int = setting(2, "Encoder blocks.", rule=COUNT)
    hidden_dim: int = setting(
        64, "Width of the hidden states, a multiple of --num-heads.", rule=COUNT
    )
    num_heads: int = setting(4, "Attention heads.", rule=COUNT)
    initializer_range: float = setting(0.1, "Standard deviation of new weights.", rule=POSITIVE)
    # === Training ===
    steps: int = setting(2000, "Optimizer steps.", rule=COUNT)
    batch_size: int = setting(32, "Rows of a step, all tasks and devices together.", rule=COUNT)
    learning_rate: float = setting(
        3e-3, "Highest learning rate; it falls linearly to zero.", rule=POSITIVE
    )
    warmup_share: float = setting(
        0.1, "Share of the steps in which the learning rate rises.", rule=SHARE
    )
    weight_decay: float = setting(0.01, "Factor of the decoupled weight decay.", rule=NOT_NEGATIVE)
    beta_2: float = setting(0.98, "Decay of the second moment.", rule=SHARE)
    clip_norm: float = setting(1.0, "Largest norm of all gradients together.", rule=POSITIVE)
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
        return {
            **counting(self),
            "tasks": self.task_names,
            "lengths": self.test_lengths,
            "max_sequence_length": self.table_length,
        }
