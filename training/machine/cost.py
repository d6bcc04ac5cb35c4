"""Cost of work: FLOPs by arithmetic, hours from what a device does, and the time left."""

import dataclasses
import math

from training.command.without_keras import without_keras
from training.finetune_glue.protocol import GLUE_TASKS, PROTOCOLS
from training.machine.facts import machine_facts
from training.presets.variant import parse as parse_variant

with without_keras():
    from keras_tupe.models.sizes import SIZES

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


def find_device(precision, peak_flops=None, utilisation=None):
    """Returns the `Device` that is found, and the kind of the machine, a dictionary.

    Args:
        precision: of the work.
        peak_flops, utilisation: of the device, where they are known better.

    Raises:
        ValueError: if the device cannot be used.
    """
    machine, peak = machine_facts(precision)
    like = TWO_CORES if machine["gpu"] is None else H200
    name = machine["gpu"] or f"{machine['cpu']}, {machine['cores']} cores"
    device = dataclasses.replace(
        like,
        name=f"{name}, {precision}",
        peak_flops=peak_flops or peak,
        utilisation=utilisation or like.utilisation,
    )
    return device, machine


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
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Cost(*(a + b for a, b in pairs))

    def times(self, count):
        """Returns the cost of doing it `count` times."""
        return Cost(*(count * value for value in dataclasses.astuple(self)))


def training(settings, length, vocabulary_size, device, looks=0):
    """Returns the cost of the steps of a run of pre-training, whatever its positional method.

    Args:
        settings: a `Settings` of `training.pretrain`.
        length: tokens per row.
        vocabulary_size: number of tokens.
        device: a `Device`.
        looks: steps that validations are worth.
    """
    from keras_tupe.trainer import step_flops

    flops = step_flops(
        **_sizes(settings.size),
        vocabulary_size=vocabulary_size,
        batch_size=settings.batch_size,
        length=length,
        num_slots=math.ceil(settings.mask_rate * length),
    )
    total = (settings.steps + looks) * flops
    seconds = device.seconds(total, settings.steps + looks)
    return Cost(1, settings.steps * settings.batch_size * length, total, seconds)


def pretraining(settings, length, vocabulary_size, position, device):
    """Returns the cost of one run of pre-training with its validations.

    Args:
        settings, length, vocabulary_size, device: as in `training`.
        position: positional method, as on a command line.
    """
    looks = _FORWARD * min(CURVE_POINTS, settings.steps) * settings.valid_batches
    cost = training(settings, length, vocabulary_size, device, looks)
    seconds = slower(position, length) * cost.seconds + 2 * device.start_seconds
    return dataclasses.replace(cost, seconds=seconds)


def glue(settings, size, position, device):
    """Returns the cost of fine-tuning one preset on GLUE.

    Args:
        settings: a `Glue` of `training.experiment`.
        size: name of the encoder's size, or a dictionary of its sizes.
        position: positional method, as on a command line.
        device: a `Device`.
    """
    cost, protocol = Cost(), PROTOCOLS[settings.protocol]
    for task in settings.tasks:
        rows = GLUE_TASKS[task].rows
        train = rows["train"] if isinstance(rows["train"], int) else max(rows["train"])
        train = min(train, settings.max_train_rows or train)
        dev = sum(count for split, count in rows.items() if split.startswith("validation"))
        epochs = settings.epochs or protocol.epochs[task]
        tokens = min(_WIDER * _GLUE_TOKENS[task], settings.length or protocol.length)
        batch = settings.batch_size
        cost += _tuning(size, position, device, tokens, epochs * train, dev, batch)
    return cost.times(len(settings.learning_rates) * settings.seeds)


def squad(settings, length, size, position, device):
    """Returns the cost of fine-tuning one preset on SQuAD at one length.

    Args:
        settings: a `Squad` of `training.experiment`.
        length: tokens per window.
        size, position, device: as in `glue`.
    """
    room = length - _AROUND
    windows = 1 + max(0.0, (_CONTEXT - room) / settings.doc_stride + 0.5)
    tokens = min(length, _WIDER * (_CONTEXT + _AROUND))
    questions = min(_SQUAD_TRAIN, settings.max_train_questions or _SQUAD_TRAIN)
    train = settings.epochs * questions * windows
    dev = windows * min(_SQUAD_DEV, settings.max_dev_questions or _SQUAD_DEV)
    cost = _tuning(size, position, device, tokens, train, dev, settings.batch_size)
    return cost.times(settings.seeds)


def _tuning(size, position, device, tokens, rows, evaluated, batch_size):
    """Returns the cost of one run of fine-tuning, with its evaluation."""
    from keras_tupe.trainer import step_flops

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
    from keras_tupe import positions  # Keras starts in seconds

    short, long = positions.get(parse_variant(position).position).relative_step_time
    share = min(max((length - 128) / 384, 0.0), 1.0)
    return short + share * (long - short)


class TimeLeft:
    """How long runs to come will take: as long as those that are finished, on the mean.

    Args:
        guess: seconds of a training, as long as none is finished.

    Attributes:
        trained: list of the seconds of whole trainings.
        tested: list of the seconds of all tests of a model.
    """

    def __init__(self, guess):
        self._guess = guess
        self.trained, self.tested = [], []

    def seconds(self, num_trainings, num_tests):
        """Returns the seconds that so many trainings, and tests of so many models, will take.

        Tests count as nothing until the first are finished.
        """
        training = _mean(self.trained or [self._guess])
        return num_trainings * training + num_tests * _mean(self.tested or [0.0])


def _mean(values):
    return sum(values) / len(values)
