"""What an experiment costs: FLOPs by arithmetic, hours from what a device does in a second."""

import dataclasses
import math

from keras_tupe import SIZES, positions
from keras_tupe.data import GLUE_TASKS
from keras_tupe.trainer import step_flops
from training.finetune_glue.protocol import PROTOCOLS
from training.presets.variant import parse as parse_variant

# Tokens of a row on the average, [CLS] and [SEP] included, as BERT's word pieces count them.
# Counted on the training files; those of MNLI, QQP and QNLI are estimates.
_GLUE_TOKENS = {"cola": 12, "sst2": 14, "mrpc": 54, "stsb": 28, "rte": 71}
_GLUE_TOKENS |= {"mnli": 40, "qqp": 30, "qnli": 50}
_WIDER = 1.25  # batches of rows of like lengths are as wide as their longest row
_SQUAD_TRAIN, _SQUAD_DEV = 87_599, 10_570  # questions
_CONTEXT, _AROUND = 161, 15  # tokens of a paragraph; of a question, with [CLS] and two [SEP]
_FORWARD = 1 / 3  # of the FLOPs of a training step
CURVE_POINTS = 20  # validations of a run of pre-training


@dataclasses.dataclass(frozen=True)
class Device:
    """What a device does in a second, as far as a plan needs it.

    Attributes:
        name: in words.
        peak_flops: matrix products at best, FLOP/s.
        utilisation: share of the peak that training is assumed to reach.
        step_seconds: what a step takes at least, however small it is.
        start_seconds: what a run of fine-tuning takes before its first step, compiling included;
            pre-training, in a process of its own, twice that.
    """

    name: str
    peak_flops: float
    utilisation: float
    step_seconds: float
    start_seconds: float

    def seconds(self, flops, steps):
        """Returns the time of some steps of training."""
        return max(flops / (self.peak_flops * self.utilisation), steps * self.step_seconds)


H200 = Device("one NVIDIA H200, bfloat16", 989e12, 0.35, 0.008, 20.0)
TWO_CORES = Device("two CPU cores, float32", 200e9, 0.45, 0.004, 12.0)


@dataclasses.dataclass(frozen=True)
class Cost:
    """What something costs. Costs can be added.

    Attributes:
        runs: trainings with an optimizer of their own.
        tokens: that are trained on.
        flops: model FLOPs, evaluation included; positional methods count nothing.
        seconds: on the device of the plan.
    """

    runs: int = 0
    tokens: float = 0.0
    flops: float = 0.0
    seconds: float = 0.0

    def __add__(self, other):
        return Cost(*(a + b for a, b in zip(_values(self), _values(other), strict=True)))

    def times(self, count):
        """Returns the cost of doing it `count` times."""
        return Cost(*(count * value for value in _values(self)))


def _values(cost):
    return dataclasses.astuple(cost)


def pretraining(values, length, vocabulary_size, position, device):
    """Returns the cost of one run of pre-training with its validations.

    Args:
        values: settings of `training.pretrain` by name.
        length: tokens per row.
        vocabulary_size: number of tokens.
        position: positional method, as on a command line.
        device: a `Device`.
    """
    steps, batch_size = values["steps"], values["batch_size"]
    flops = step_flops(
        **_sizes(values["size"]),
        vocabulary_size=vocabulary_size,
        batch_size=batch_size,
        length=length,
        num_slots=math.ceil(values["mask_rate"] * length),
    )
    looks = _FORWARD * min(CURVE_POINTS, steps) * values["valid_batches"]
    total = (steps + looks) * flops
    seconds = slower(position, length) * device.seconds(total, steps + looks)
    return Cost(1, steps * batch_size * length, total, seconds + 2 * device.start_seconds)


def glue(glue_settings, size, position, device):
    """Returns the cost of fine-tuning one preset on GLUE.

    Args:
        glue_settings: a scale's `glue`, a dictionary.
        size: name of the encoder's size, or a dictionary of its sizes.
        position: positional method, as on a command line.
        device: a `Device`.
    """
    cost, protocol = Cost(), PROTOCOLS[glue_settings["protocol"]]
    for task in glue_settings["tasks"]:
        rows = GLUE_TASKS[task].rows
        train = rows["train"] if isinstance(rows["train"], int) else max(rows["train"])
        train = min(train, glue_settings["max_train_rows"] or train)
        dev = sum(count for split, count in rows.items() if split.startswith("validation"))
        epochs = glue_settings["epochs"] or protocol.epochs[task]
        tokens = min(_WIDER * _GLUE_TOKENS[task], glue_settings["length"] or protocol.length)
        batch = glue_settings["batch_size"]
        cost += _tuning(size, position, device, tokens, epochs * train, dev, batch)
    return cost.times(len(glue_settings["learning_rates"]) * glue_settings["seeds"])


def squad(squad_settings, length, size, position, device):
    """Returns the cost of fine-tuning one preset on SQuAD at one length.

    Args:
        squad_settings: a scale's `squad`, a dictionary.
        length: tokens per window.
        size, position, device: as in `glue`.
    """
    room = length - _AROUND
    windows = 1 + max(0.0, (_CONTEXT - room) / squad_settings["doc_stride"] + 0.5)
    tokens = min(length, _WIDER * (_CONTEXT + _AROUND))
    questions = min(_SQUAD_TRAIN, squad_settings["max_train_questions"] or _SQUAD_TRAIN)
    train = squad_settings["epochs"] * questions * windows
    dev = windows * min(_SQUAD_DEV, squad_settings["max_dev_questions"] or _SQUAD_DEV)
    cost = _tuning(size, position, device, tokens, train, dev, squad_settings["batch_size"])
    return cost.times(squad_settings["seeds"])


def _tuning(size, position, device, tokens, rows, evaluated, batch_size):
    """Returns the cost of one run of fine-tuning, with its evaluation."""
    flops = step_flops(**_sizes(size), vocabulary_size=0, batch_size=1, length=tokens, num_slots=0)
    steps, looks = rows / batch_size, evaluated / batch_size
    total = (rows + _FORWARD * evaluated) * flops
    seconds = slower(position, tokens) * device.seconds(total, steps + _FORWARD * looks)
    return Cost(1, rows * tokens, total, seconds + device.start_seconds)


def _sizes(size):
    sizes = dict(size) if isinstance(size, dict) else dataclasses.asdict(SIZES[size])
    sizes.pop("num_heads", None)
    return sizes


def slower(position, length):
    """Returns the time of a step by that of `absolute`.

    Args:
        position: positional method, as on a command line.
        length: tokens per row; between 128 and 512 on a straight line, beyond them as there.

    Example:
        >>> slower("tupe_r", 512), slower("qkr_4:k=64", 512)
        (1.0, 1.41)
    """
    short, long = positions.get(parse_variant(position).position).relative_step_time
    share = min(max((length - 128) / 384, 0.0), 1.0)
    return short + share * (long - short)
