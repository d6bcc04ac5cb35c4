"""The settings of `training.finetune_glue`."""

import dataclasses

from training.command.checks import COUNT, NOT_NEGATIVE, POSITIVE, SHARE
from training.command.settings import setting
from training.finetune_glue.checks import find_problems
from training.finetune_glue.protocol import COLUMNS, GLUE_TASKS, PROTOCOLS, TASKS
from training.machine import settings as machine

_LENGTH = ("an integer >= 6, room for two words and four special tokens", lambda n: n >= 6)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.finetune_glue`. What is left out is as in the protocol."""

    preset: str | None = setting(
        None, "Folder of a preset with a tokenizer, as training.pretrain makes it.", positional=True
    )
    data: str | None = setting(
        None, "Folder that holds the official TSV files (CoLA/train.tsv, ...), or tfds."
    )
    tasks: tuple = setting(
        (), f"Tasks, of {', '.join(TASKS)}. Default: those that the protocol's paper reports."
    )
    protocol: str = setting("tupe", "Paper whose settings are taken.", one_of=PROTOCOLS)
    out: str | None = setting(None, "Folder of the grid; the same command continues what is there.")
    # === Of the protocol ===
    learning_rates: tuple = setting((), "Highest learning rates to try, > 0.")
    seeds: int | None = setting(None, "Runs of each learning rate.", rule=COUNT)
    epochs: int | None = setting(None, "Passes over the training set, of every task.", rule=COUNT)
    batch_size: int | None = setting(None, "Rows per step, all replicas together.", rule=COUNT)
    warmup_share: float | None = setting(
        None, "Share of the steps in which the learning rate rises.", rule=SHARE
    )
    weight_decay: float = setting(0.01, "Factor of the decoupled weight decay.", rule=NOT_NEGATIVE)
    clip_norm: float = setting(1.0, "Largest norm of all gradients together.", rule=POSITIVE)
    dropout: float = setting(
        0.1, "Dropout rate of the encoder and before the last layer.", rule=SHARE
    )
    keep_zeros: bool = setting(
        False, "Whether weights of the preset's kernels that are zero, as pruned ones are, stay so."
    )
    # === Rows ===
    length: int | None = setting(
        None,
        "Most tokens of a row, special ones included; longer texts are cut. "
        "Default: the protocol's, or less if the model takes less.",
        rule=_LENGTH,
    )
    max_train_rows: int | None = setting(
        None, "Most rows of a training set, always the same ones. Default: all.", rule=COUNT
    )
    random_labels: bool = setting(
        False, "Whether labels are shuffled over the training rows: a control, to score as chance."
    )
    submission: bool = setting(
        False, "Whether the test sets are predicted too, in the format of GLUE's server."
    )
    skip_bad: bool = setting(
        False, "Whether bad lines are left out and reported, instead of ending with an error."
    )
    check_counts: bool = setting(
        True, "Whether another number of rows than the official one is an error."
    )
    tfds_dir: str | None = setting(None, "Folder of TFDS's data, if not its default one.")
    position_file: str | None = setting(
        None, "Python file that defines the preset's positional method, if it is your own."
    )
    # === Machine ===
    strategy: str = machine.strategy()
    precision: str = machine.precision()
    xla: str = machine.xla()
    micro_batches: int = machine.micro_batches()
    remat: bool = machine.remat()
    deterministic: bool = machine.deterministic()

    def problems(self):
        """Returns a sentence for each mistake."""
        return find_problems(self)

    def plan(self):
        """Returns what is run, the protocol's values where nothing else was asked for."""
        protocol = PROTOCOLS[self.protocol]

        def chosen(name):
            value = getattr(self, name)
            return getattr(protocol, name) if value is None else value

        asked = {name.lower().replace("-", "").replace("_", "") for name in self.tasks}
        reported = {COLUMNS[name].task for name in protocol.columns}
        tasks = tuple(name for name in TASKS if name in (asked or reported))
        return Plan(
            tasks=tasks,
            learning_rates=tuple(map(float, self.learning_rates)) or protocol.learning_rates,
            seeds=tuple(range(chosen("seeds"))),
            epochs={name: self.epochs or protocol.epochs[name] for name in tasks},
            batch_size=chosen("batch_size"),
            warmup_share=chosen("warmup_share"),
            length=chosen("length"),
            metrics={name: protocol.metrics[name] for name in tasks},
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """A protocol as it is carried out.

    Attributes:
        tasks: names of tasks, in the order of the papers' tables.
        learning_rates, batch_size, warmup_share, length: as in `Protocol`.
        seeds: the seeds themselves, from 0.
        epochs, metrics: by task.
    """

    tasks: tuple
    learning_rates: tuple
    seeds: tuple
    epochs: dict
    batch_size: int
    warmup_share: float
    length: int
    metrics: dict

    def changes(self, settings, length=None):
        """Returns a sentence for each thing that is not as in the paper.

        Args:
            settings: the `Settings` that this is the plan of.
            length: most tokens of a row, where the model takes less than the plan has.
        """
        protocol = PROTOCOLS[settings.protocol]
        found = []
        if set(self.learning_rates) != set(protocol.learning_rates):
            theirs = ", ".join(map(str, protocol.learning_rates))
            found.append(f"learning rates {', '.join(map(str, self.learning_rates))}, not {theirs}")
        for name, ours, theirs in (
            ("seeds", len(self.seeds), protocol.seeds),
            ("batch size", self.batch_size, protocol.batch_size),
            ("warm-up share", self.warmup_share, protocol.warmup_share),
            ("length", length or self.length, protocol.length),
        ):
            if ours != theirs:
                found.append(f"{name} {ours}, not {theirs}")
        for ours, theirs in sorted({(self.epochs[x], protocol.epochs[x]) for x in self.tasks}):
            if ours != theirs:
                where = [
                    GLUE_TASKS[name].folder
                    for name in self.tasks
                    if (self.epochs[name], protocol.epochs[name]) == (ours, theirs)
                ]
                found.append(f"epochs {ours}, not {theirs} ({', '.join(where)})")
        for name, ours, theirs in (
            ("dropout", settings.dropout, 0.1),
            ("weight decay", settings.weight_decay, 0.01),
            ("clip norm", settings.clip_norm, 1.0),
        ):
            if ours != theirs:
                found.append(f"{name} {ours}, not {theirs}")
        if settings.max_train_rows is not None:
            found.append(f"at most {settings.max_train_rows:,} training rows of a task")
        if settings.random_labels:
            found.append("shuffled training labels: a control")
        return found
