"""The settings of probes, and what can be wrong with them."""

import dataclasses
import functools
import re

from training.command.checks import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    uneven_micro_batches,
    wrong_fields,
)
from training.command.kinds import nearest, values_of
from training.command.settings import counting, setting
from training.command.variant import parse
from training.machine import settings as machine
from training.study.study import StudyOptions

_LENGTH = re.compile(r"[1-9]\d{0,5}x?", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Settings(StudyOptions):
    """Settings of a probe."""

    positions: tuple = setting(
        (),
        "Positional methods: names of `keras-tupe list methods`, NAME:option=value, or .py files "
        "that define one.",
        counts=False,
    )
    tasks: tuple = setting((), "Tasks that a run learns. Default: all.")
    seeds: int = setting(
        5, "Runs of each method; their seeds are 0, 1, ...", rule=COUNT, counts=False
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
    warmup: float = setting(0.1, "Share of the steps in which the learning rate rises.", rule=SHARE)
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
        outside = wrong_fields(self)
        found = [*outside.values()]
        if not outside.keys() & {"batch_size", "micro_batches"}:
            found += uneven_micro_batches(self.batch_size, self.micro_batches)
        if not outside.keys() & {"hidden_dim", "num_heads"} and self.hidden_dim % self.num_heads:
            found.append(
                "--hidden-dim must be a multiple of --num-heads. Received: "
                f"hidden_dim={self.hidden_dim}, num_heads={self.num_heads}"
            )
        found += self.out_problems() + _task_problems(self.tasks)
        lengths = _length_problems(self) if "length" not in outside else []
        variants, problems = _variants(values_of(self.positions))
        found += lengths + problems
        sizes = {"length", "max_sequence_length", "hidden_dim", "num_heads"}
        if variants and not lengths and not sizes & outside.keys():
            found += _table_problems(self, variants)
        return found

    @functools.cached_property
    def variants(self):
        """The `Variant` of each method, in the order of `--positions`."""
        return [parse(text) for text in values_of(self.positions)]

    @property
    def task_names(self):
        """Names of the tasks, sorted: their order is that of their tokens."""
        from training.studies.probe.tasks import TASKS

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


def _task_problems(names):
    from training.studies.probe.tasks import TASKS

    found = [
        f"--tasks must be of {list(TASKS)}; the nearest is {nearest(name, TASKS)!r}. "
        f"Received: {name!r}"
        for name in names
        if name not in TASKS
    ]
    if len(set(names)) < len(names):
        found.append(f"--tasks must name each task once. Received: {' '.join(names)}")
    return found


def _length_problems(settings):
    found = []
    for text in values_of(settings.lengths):
        if not _LENGTH.fullmatch(text):
            found.append(
                "--lengths must be even numbers of tokens, or times --length, such as 2x. "
                f"Received: {text!r}"
            )
        elif not text.endswith("x") and (int(text) % 2 or int(text) < settings.length):
            found.append(
                "--lengths must be even and not below --length, for shorter rows are those of "
                f"training. Received: {text}, length={settings.length}"
            )
        elif not text.endswith("x") and settings.length < int(text) < 1.5 * settings.length:
            found.append(
                "--lengths above --length must be 1.5 times as many or more, so that there is room "
                f"for a task. Received: {text}, length={settings.length}"
            )
    return found


def _variants(texts):
    """Returns the variants that are right, and sentences on the others."""
    if not texts:
        return [], [
            "--positions must name the methods to probe, such as --positions none absolute tupe_r. "
            "Received: none"
        ]
    variants, found = [], []
    for text in texts:
        try:
            variants.append(parse(text))
        except (ValueError, TypeError) as error:
            found.append(f"--positions: {error}")
    labels = [variant.label for variant in variants]
    found += [
        f"--positions must name every method once. Received: {label!r} more than once"
        for label in sorted(set(labels))
        if labels.count(label) > 1
    ]
    return variants, found


def _table_problems(settings, variants):
    """Checks the options of the methods, and that no row is longer than a table."""
    from keras_tupe import positions

    asked, found = max(settings.test_lengths[-1], settings.length), []
    key_dim = settings.hidden_dim // settings.num_heads
    for variant in variants:
        method, options = positions.get(variant.position), variant.resolved()
        dims = positions.Dims(settings.num_heads, key_dim, settings.table_length)
        try:
            for factory in (method.embed, method.bias, method.shared, method.attention):
                if factory is not None:
                    factory(dims, options)
            limited = method.has_length_limit(options)
        except (ValueError, TypeError) as error:
            found.append(f"--positions: {variant.text}: {error}")
            continue
        if limited and asked > settings.table_length:
            found.append(
                f"Rows must not be longer than the position table of {variant.label}: lower "
                "--lengths, or raise --max-sequence-length. Received: rows of "
                f"{asked} tokens, max_sequence_length={settings.table_length}"
            )
    return found
