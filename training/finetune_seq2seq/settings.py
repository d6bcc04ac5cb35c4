"""The settings of `training.finetune_seq2seq`."""

import dataclasses

from training.command import config_file
from training.command.checks import COUNT, COUNT_OR_ZERO, NOT_NEGATIVE, POSITIVE, SHARE
from training.command.settings import COMMAND_LINE, counting, setting
from training.command.without_keras import without_keras
from training.finetune_seq2seq.checks import SCHEDULES, TRUNK, find_problems
from training.machine import settings as machine
from training.pretrain.method import MethodChoice
from training.pretrain.trunk import with_trunk

with without_keras():
    from keras_tupe.models.sizes import SIZES

_LENGTH = ("an integer >= 2", lambda value: value >= 2)
# What is done with a trained model: a checkpoint is of any of these.
_AFTERWARDS = ("num_beams", "length_penalty")


@with_trunk(TRUNK, after="size")
class Settings(MethodChoice):
    """Settings of `training.finetune_seq2seq`."""

    preset: str | None = setting(
        None,
        "Folder of a preset to train further. Default: a new model.",
        positional=True,
        counts=False,
    )
    train: str | None = setting(
        None, "File to train on: source, tab, target in each line.", counts=False
    )
    valid: str | None = setting(None, "File to score on, in the same format.", counts=False)
    test: str | None = setting(
        None, "File to score on besides, at the end. Default: none.", counts=False
    )
    out: str | None = setting(
        None, "Folder of the runs; the same command continues what is there.", counts=False
    )
    config: str | None = setting(
        None,
        f"Named settings: {', '.join(config_file.names('finetune_seq2seq'))}, or the path of a "
        ".toml file.",
        counts=False,
    )
    # === New model ===
    size: str = setting("tiny", "Size of encoder and decoder.", one_of=SIZES)
    position_file: str | None = setting(
        None,
        "Python file that defines a positional method; the method is then that one.",
        counts=False,
    )
    vocabulary_size: int = setting(
        8000,
        "Pieces of the vocabulary of both columns; few words give fewer.",
        rule=("an integer >= 100", lambda value: value >= 100),
    )
    lowercase: bool = setting(False, "Whether the vocabulary lower-cases texts.")
    # === Rows ===
    max_source_length: int = setting(
        128, "Tokens of a source, special ones included.", rule=_LENGTH
    )
    max_target_length: int = setting(128, "Tokens of a target with its start token.", rule=_LENGTH)
    cut_long: bool = setting(
        False, "Whether longer texts are cut and counted, instead of ending with an error."
    )
    # === Training ===
    dropout: float = setting(0.1, "Dropout rate, 0 to below 1.")
    label_smoothing: float = setting(
        0.1, "Share of each label that goes to all other tokens.", rule=SHARE
    )
    learning_rate: float = setting(1e-3, "Highest learning rate.", rule=POSITIVE)
    schedule: str = setting(SCHEDULES[0], "How the rate falls after the warm-up.", one_of=SCHEDULES)
    steps: int | None = setting(None, "Optimizer steps. Give this or --epochs.", rule=COUNT)
    epochs: int | None = setting(None, "Passes over the pairs. Default: 10.", rule=COUNT)
    warmup_steps: int | None = setting(
        None, "Steps in which the learning rate rises. Default: 0.06 of all.", rule=COUNT_OR_ZERO
    )
    batch_size: int = setting(64, "Pairs per step, all replicas together.", rule=COUNT)
    weight_decay: float = setting(0.01, "Factor of the decoupled weight decay.", rule=NOT_NEGATIVE)
    beta_1: float = setting(0.9, "Decay of the first moment.", rule=SHARE)
    beta_2: float = setting(0.98, "Decay of the second moment.", rule=SHARE)
    clip_norm: float | None = setting(1.0, "Largest norm of all gradients together.", rule=POSITIVE)
    seeds: int = setting(1, "Runs; their seeds are 0, 1, ...", rule=COUNT, counts=False)
    # === What is written ===
    num_beams: int = setting(
        1, "Beginnings that are kept; 1 takes the likeliest token.", rule=COUNT
    )
    length_penalty: float = setting(
        1.0,
        "Power of a text's length that its log-probability is divided by; with beams.",
        rule=NOT_NEGATIVE,
    )
    # === Record ===
    valid_every: int | None = setting(
        None,
        "Steps between two held-out losses. Default: a twentieth of all.",
        rule=COUNT,
        counts=False,
    )
    save_every: int = setting(1000, "Steps between two checkpoints.", rule=COUNT, counts=False)
    log_every: int | None = setting(
        None,
        "Steps between two lines of the log. Default: a hundredth of all.",
        rule=COUNT,
        counts=False,
    )
    # === Machine ===
    strategy: str = machine.strategy()
    precision: str = machine.precision()
    xla: str = machine.xla()
    micro_batches: int = machine.micro_batches()
    remat: bool = machine.remat()
    deterministic: bool = machine.deterministic()
    given: dict = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def fitted(values, from_file, given):
        """Returns the values, where epochs or steps of the command line win over the file's."""
        for name, other in (("steps", "epochs"), ("epochs", "steps")):
            if given.get(name) == COMMAND_LINE and given.get(other) not in (None, COMMAND_LINE):
                values = {key: value for key, value in values.items() if key != other}
        return values

    def problems(self):
        """Returns a sentence for each mistake."""
        return find_problems(self)

    def identity(self):
        """Returns the settings that change what comes out, a dictionary of JSON values.

        Preset and pairs are left out: they count by their content.
        """
        kept = counting(self)
        if self.position_file is not None:
            from keras_tupe.data import file_hash

            kept["position_file"] = file_hash(self.position_file)
        return kept

    def training_identity(self):
        """Returns those of `identity` that change what is trained."""
        return {name: x for name, x in self.identity().items() if name not in _AFTERWARDS}
