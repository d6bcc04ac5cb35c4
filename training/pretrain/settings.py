"""The settings of a run."""

import dataclasses
import pathlib

from training.command import config_file
from training.command.checks import COUNT, COUNT_OR_ZERO, NOT_NEGATIVE, POSITIVE, RATE, SHARE
from training.command.settings import setting
from training.command.without_keras import objective_names, pattern_names, without_keras
from training.machine import settings as machine
from training.pretrain.checks import SHARING, find_problems
from training.pretrain.identity import identity_of
from training.pretrain.method import MethodChoice
from training.pretrain.schedule import scaled, step_numbers
from training.pretrain.trunk import ASKED, with_trunk

with without_keras():
    from keras_tupe._json_file import parse_json
    from keras_tupe.models.sizes import SIZES


@with_trunk(ASKED, after="size")
class Settings(MethodChoice):
    """Settings of `training.pretrain`. The defaults are those of Ke et al. 2021, Table 2."""

    data: str | None = setting(None, "Folder of rows, made by `keras-tupe prepare`.", counts=False)
    out: str | None = setting(
        None, "Folder of the run; the same command continues what is there.", counts=False
    )
    config: str | None = setting(
        None,
        f"Named settings: {', '.join(config_file.names('pretrain'))}, or the path of a .toml file.",
        counts=False,
    )
    preset: str | None = setting(
        None, "Folder of a preset whose encoder is trained further, instead of a new one."
    )
    objective: str = setting(
        "masked_lm",
        f"What is predicted: {', '.join(objective_names())}; or a Python file that defines an "
        "objective, see `keras_tupe.objectives`.",
    )
    # === Model ===
    size: str = setting("base", "Size of the encoder.", one_of=SIZES)
    position_file: str | None = setting(
        None, "Python file that defines a positional method; the method is then that one."
    )
    attention_pattern: str | None = setting(
        None,
        f"Who attends to whom: {', '.join(pattern_names())}. Default: the objective's own.",
    )
    pattern_file: str | None = setting(
        None, "Python file that defines an attention pattern; the pattern is then that one."
    )
    max_sequence_length: int | None = setting(
        None,
        "Rows of position tables, in tokens. Default: the length of the data's rows, or of memory "
        "and segment.",
        rule=COUNT,
    )
    # === Masking (all objectives but causal_lm and seq2seq) ===
    mask_rate: float = setting(
        0.15, "Share of the tokens that is masked.", rule=RATE, may_change=True
    )
    whole_word: bool = setting(False, "Whether whole words are masked.", may_change=True)
    mask_special: bool = setting(
        False, "Whether special tokens are masked, as TUPE's code does.", may_change=True
    )
    # === Replaced tokens (objective replaced_token) ===
    generator_share: float = setting(
        0.25, "Widths of the generator over those of the encoder.", rule=RATE
    )
    embedding_sharing: str = setting(
        "tied", "How generator and encoder share token vectors.", one_of=SHARING
    )
    discriminator_weight: float = setting(
        50.0, "Factor of the encoder's loss beside that of the generator.", rule=NOT_NEGATIVE
    )
    # === Noise (objective seq2seq) ===
    infill_share: float = setting(
        0.3,
        "Share of the tokens that spans cover, each behind one mask.",
        rule=RATE,
        may_change=True,
    )
    mean_span: float = setting(
        3.0,
        "Mean length of these spans, in tokens; lengths are Poisson's.",
        rule=("from 1 to 100", lambda value: 1 <= value <= 100),
        may_change=True,
    )
    permute_sentences: bool = setting(
        True, "Whether the sentences of each document in a row are shuffled.", may_change=True
    )
    # === Optimizer ===
    batch_size: int = setting(256, "Rows per step, all replicas together.", rule=COUNT)
    micro_batches: int = machine.micro_batches()
    remat: bool = machine.remat()
    steps: int = setting(1_000_000, "Optimizer steps.", rule=COUNT, may_change=True)
    warmup_steps: int = setting(
        10_000,
        "Steps in which the learning rate rises, 0 to below --steps; unless it is given here, the "
        "same share of --steps as in --config or by default.",
        rule=COUNT_OR_ZERO,
        may_change=True,
    )
    learning_rate: float = setting(1e-4, "Highest learning rate.", rule=POSITIVE, may_change=True)
    weight_decay: float = setting(
        0.01, "Factor of the decoupled weight decay.", rule=NOT_NEGATIVE, may_change=True
    )
    decay_all: bool = setting(
        False, "Whether LayerNorm and biases decay too, as in TUPE's code.", may_change=True
    )
    beta_1: float = setting(0.9, "Decay of the first moment.", rule=SHARE, may_change=True)
    beta_2: float = setting(0.999, "Decay of the second moment.", rule=SHARE, may_change=True)
    clip_norm: float = setting(
        1.0, "Largest norm of all gradients together.", rule=POSITIVE, may_change=True
    )
    seed: int = setting(
        0,
        "Seed of weights, order, masks and dropout.",
        rule=("from 0 to 2**31 - 1", lambda value: 0 <= value < 2**31),
    )
    # === Machine ===
    strategy: str = machine.strategy()
    precision: str = machine.precision()
    xla: str = machine.xla()
    deterministic: bool = machine.deterministic()
    peak_flops: float | None = setting(
        None,
        "Peak of all devices together in --precision, FLOP/s. Default: known or measured.",
        rule=POSITIVE,
        counts=False,
    )
    # === Record ===
    valid_every: int = setting(
        1000,
        "Steps between two validations; 0 means none at all.",
        rule=COUNT_OR_ZERO,
        counts=False,
    )
    valid_batches: int | None = setting(
        100,
        "Batches of held-out rows in a validation; none means all.",
        rule=COUNT,
        may_change=True,
    )
    save_every: int = setting(1000, "Steps between two checkpoints.", rule=COUNT, counts=False)
    keep: int = setting(2, "Newest checkpoints that stay.", rule=COUNT, counts=False)
    keep_steps: str = setting(
        "",
        "Steps whose checkpoints stay for good, such as 100000,300000,600000.",
        by_commas=True,
        counts=False,
    )
    preset_steps: str = setting(
        "",
        "Steps after which a preset is written besides the last one, to OUT/presets/step-K, such "
        "as 100000,300000,600000.",
        by_commas=True,
        counts=False,
    )
    log_every: int = setting(50, "Steps between two lines of the log.", rule=COUNT, counts=False)
    tensorboard: bool = setting(True, "Whether TensorBoard's files are written too.", counts=False)
    skip_bad_steps: int = setting(
        0,
        "Steps in all that may be left out for infinite or undefined gradients.",
        rule=COUNT_OR_ZERO,
        counts=False,
    )
    allow_change: tuple = setting(
        (),
        "Settings that may differ from those of the checkpoint to continue from.",
        counts=False,
    )
    given: dict = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def fitted(values, from_file, given):
        """Returns the values with what follows the number of steps, see `scaled`."""
        defaults = {name: getattr(Settings, name) for name in ("steps", "warmup_steps")}
        return scaled(values, from_file, defaults, given)

    def problems(self):
        """Returns a sentence for each mistake."""
        return find_problems(self)

    def objective_record(self):
        """Returns the `Objective`.

        Raises:
            ValueError: if there is no such objective, or its file does not define one.
        """
        from keras_tupe import objectives

        name = self.objective
        return objectives.get(objectives.load_file(name) if name.endswith(".py") else name)

    def objective_options(self):
        """Returns the options of the objective, a dictionary."""
        options = self.objective_record().defaults
        return {name: getattr(self, name, default) for name, default in options.items()}

    def pattern_name(self):
        """Returns the name of the attention pattern of a new model."""
        if self.pattern_file is not None:
            return pathlib.Path(self.pattern_file).stem
        return self.attention_pattern or self.objective_record().needs("attention_pattern", "full")

    def pattern(self):
        """Returns the `AttentionPattern` of a new model; its file is loaded once.

        Raises:
            ValueError: if there is no such pattern, or its file does not define one.
        """
        from keras_tupe import attention_patterns

        if self.pattern_file is not None:
            attention_patterns.load_file(self.pattern_file)
        return attention_patterns.get(self.pattern_name())

    def resolved_pattern_options(self):
        """Returns all options of the attention pattern, a dictionary."""
        return self.pattern().resolve(parse_json(self.pattern_options))

    def memory_and_segment(self):
        """Returns the tokens of memory and segment together, 0 where rows are not cut."""
        return self.memory_length + (self.segment_length or self.memory_length)

    def keep_step_numbers(self):
        """Returns the steps whose checkpoints stay for good, ascending."""
        return step_numbers(self.keep_steps)

    def saved_step_numbers(self):
        """Returns the steps after which there is a checkpoint, however often there is one."""
        return {*self.keep_step_numbers(), *self.preset_step_numbers()}

    def preset_step_numbers(self):
        """Returns the steps after which a preset is written besides the last one, ascending."""
        return step_numbers(self.preset_steps)

    def identity(self):
        """Returns what must be equal for a run to continue from a checkpoint, see `identity_of`."""
        return identity_of(self)
