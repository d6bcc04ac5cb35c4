"""The settings of `training.finetune_squad`."""

import dataclasses

from training.command.checks import COUNT, NOT_NEGATIVE, POSITIVE, SHARE
from training.command.settings import counting, setting
from training.finetune_squad.checks import EXTENSIONS, find_problems
from training.machine import settings as machine


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.finetune_squad`.

    Of SQuAD, Huang et al. 2020 say the length, 512 tokens (and 576, 640, 704). Learning rate,
    epochs and batch size are what they say of GLUE; windows, lengths of questions and answers and
    the warm-up are as in BERT's code.
    """

    preset: str | None = setting(
        None,
        "Folder of a preset with a tokenizer, as training.pretrain makes it.",
        positional=True,
        counts=False,
    )
    train: str | None = setting(
        None, "File to train on, JSON in the format of SQuAD v1.1.", counts=False
    )
    dev: str | None = setting(None, "File to score on, in the same format.", counts=False)
    out: str | None = setting(
        None, "Folder of the runs; the same command continues what is there.", counts=False
    )
    # === Rows ===
    length: int = setting(512, "Tokens of a row, special ones and question included.", rule=COUNT)
    doc_stride: int = setting(128, "Tokens from one window of a passage to the next.", rule=COUNT)
    max_question_length: int = setting(64, "Tokens of a question that are kept.", rule=COUNT)
    extend: str = setting(
        "interpolate",
        "How position tables are made longer if rows are longer than them: .",
        one_of=EXTENSIONS,
    )
    max_train_questions: int | None = setting(
        None,
        "Most questions to train on, always the same ones. Default: all.",
        rule=COUNT,
        counts=False,
    )
    max_dev_questions: int | None = setting(
        None,
        "Most questions to score on, always the same ones. Default: all.",
        rule=COUNT,
        counts=False,
    )
    skip_bad: bool = setting(
        False,
        "Whether bad questions are left out and reported, instead of ending with an error.",
        counts=False,
    )
    position_file: str | None = setting(
        None,
        "Python file that defines the preset's positional method, if it is your own.",
        counts=False,
    )
    # === Training ===
    learning_rate: float = setting(3e-5, "Highest learning rate.", rule=POSITIVE)
    epochs: int = setting(3, "Passes over the questions.", rule=COUNT)
    batch_size: int = setting(32, "Rows per step, all replicas together.", rule=COUNT)
    warmup_share: float = setting(
        0.1, "Share of the steps in which the learning rate rises.", rule=SHARE
    )
    weight_decay: float = setting(0.01, "Factor of the decoupled weight decay.", rule=NOT_NEGATIVE)
    clip_norm: float = setting(1.0, "Largest norm of all gradients together.", rule=POSITIVE)
    dropout: float = setting(0.1, "Dropout rate of the encoder.", rule=SHARE)
    seeds: int = setting(1, "Runs; their seeds are 0, 1, ...", rule=COUNT, counts=False)
    # === Answers ===
    max_answer_length: int = setting(30, "Tokens of an answer, at most.", rule=COUNT)
    n_best: int = setting(20, "Answers to each question in nbest.json.", rule=COUNT)
    save_presets: bool = setting(False, "Whether each run's model is kept, as a preset.")
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

    def identity(self):
        """Returns the settings that change what comes out, a dictionary of JSON values.

        Preset and questions are left out: they count by their content.
        """
        return counting(self)
