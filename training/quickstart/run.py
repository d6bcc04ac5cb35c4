"""One method of the quickstart: masked language modeling, then the word-order task."""

import dataclasses
import math
import time

import keras
import numpy as np

from keras_tupe import SIZES, TupeBackbone, TupeMaskedLM, TupeTextClassifier, data
from keras_tupe.trainer import LinearWarmupDecay
from training.machine.devices import make_machine
from training.pretrain.loop import Training
from training.pretrain.progress import Progress
from training.quickstart.plan import Rates
from training.quickstart.recipe import (
    BETA_2,
    CURVE_BATCHES,
    INITIALIZER_RANGE,
    LEARNING_RATE,
    LENGTH,
    TASK_BATCH_SIZE,
    TASK_LEARNING_RATE,
    WARMUP_SHARE,
    curve_points,
)

_FIRST_STEPS, _MEASURED_STEPS, _MEASURED_BATCHES = 10, 30, 8


@dataclasses.dataclass
class Result:
    """The scores of one method.

    Attributes:
        position: name of the method.
        parameters: number of weights of the encoder.
        loss: held-out masked-token loss, in nats.
        accuracy: held-out masked accuracy, a share.
        word_order: accuracy of the word-order task, a share.
        interval: half width of its 95 % binomial interval, a share.
        seconds: time of training, both parts.
        tokens: tokens seen in pre-training at each point of the curve.
        curve: held-out loss at each point, in nats.
    """

    position: str
    parameters: int
    loss: float
    accuracy: float
    word_order: float
    interval: float
    seconds: float
    tokens: list
    curve: list


def build(position, corpus, size, seed):
    """Returns a new masked language model of a method.

    Args:
        position: name of the method.
        corpus: a `QuickstartData`.
        size: name of one of `SIZES`.
        seed: of its weights.
    """
    keras.utils.set_random_seed(seed)
    backbone = TupeBackbone(
        corpus.tokenizer.vocabulary_size,
        **dataclasses.asdict(SIZES[size]),
        position=position,
        dropout=0.0,
        max_sequence_length=LENGTH,
        normalize_first=True,
        initializer_range=INITIALIZER_RANGE,
    )
    return TupeMaskedLM(backbone)


def pretrain(model, corpus, steps, show):
    """Trains a new masked language model and tests it, now and then and at the end.

    Args:
        model: what `build` made.
        corpus: a `QuickstartData`.
        steps: steps of the learning rate's way down; as many are done as the curve's points divide.
        show: a `Show`.

    Returns:
        `((tokens, losses), (loss, accuracy))`: the curve, tokens seen and the loss on some
        held-out rows; and the scores on all of them, each masked token counted once.
    """
    points = curve_points(steps)
    every = steps // points
    rows = corpus.training
    training = _training(model, rows, corpus.held_out, LEARNING_RATE, steps, beta_2=BETA_2)
    losses = []
    with show.progress(points * every, rows, "pre-training") as progress:
        for step in range(every, points * every + 1, every):
            training.fit(step - every, step, progress)
            losses.append(training.evaluate(step, progress, CURVE_BATCHES)["valid_loss"])
        show.begin("validation")
        scores = training.evaluate(step, progress)
    tokens = (np.arange(points) + 1) * every * rows.batch_size * LENGTH
    return (tokens.tolist(), losses), (scores["valid_loss"], scores["valid_accuracy"])


def fine_tune(backbone, corpus, steps, seed, show):
    """Trains a classifier on the word-order task; returns its accuracy on the test pairs.

    Args:
        backbone: pre-trained.
        corpus: a `QuickstartData`.
        steps: number of steps.
        seed: an integer.
        show: a `Show`.
    """
    keras.utils.set_random_seed(seed)
    rows = data.WordOrderRows(corpus.task_training, batch_size=TASK_BATCH_SIZE, seed=seed)
    model = TupeTextClassifier(backbone, num_classes=2, dropout=0.0)
    training = _training(model, rows, None, TASK_LEARNING_RATE, steps)
    with show.progress(steps, rows, "fine-tuning") as progress:
        training.fit(0, steps, progress)
    test = corpus.task_test
    inputs = {"token_ids": test.token_ids, "padding_mask": test.padding_mask}
    logits = model.predict(inputs, batch_size=200, verbose=0)
    return float((logits.argmax(axis=1) == test.labels).mean())


def run(position, corpus, settings, work, stages):
    """Trains and tests one method; returns its `Result` and the pre-trained model.

    Args:
        position: name of the method.
        corpus: a `QuickstartData`.
        settings: a `Settings`.
        work: a `Work`.
        stages: the `Stages` of the command, which knows those of `Work.stages`.
    """
    show = Show(stages, position)
    show.begin("compiling")
    started = time.monotonic()
    model = build(position, corpus, settings.size, settings.seed)
    (tokens, losses), (loss, accuracy) = pretrain(model, corpus, work.steps, show)
    pretrained = model.get_weights()
    show.begin("compiling the word-order task")
    word_order = fine_tune(model.backbone, corpus, work.task_steps, settings.seed, show)
    model.set_weights(pretrained)  # the task changed the shared encoder
    interval = 1.96 * math.sqrt(word_order * (1 - word_order) / len(corpus.task_test.labels))
    seconds = time.monotonic() - started
    parameters = model.backbone.count_params()
    return (
        Result(position, parameters, loss, accuracy, word_order, interval, seconds, tokens, losses),
        model,
    )


def measure(position, corpus, settings, stages):
    """Returns the `Rates` of a method on this machine, from a few steps of a model of its own."""
    start = time.monotonic()
    model = build(position, corpus, settings.size, settings.seed)
    count = _FIRST_STEPS + _MEASURED_STEPS
    rows = corpus.training
    training = _training(model, rows, corpus.held_out, LEARNING_RATE, count, beta_2=BETA_2)
    with Show(stages, position).progress(count, rows) as progress:
        compiling, step = _first_and_rest(
            start,
            lambda first, end: training.fit(first, end, progress),
            _MEASURED_STEPS,
            _FIRST_STEPS,
        )
        start = time.monotonic()
        test, batch = _first_and_rest(
            start, lambda first, end: training.evaluate(0, progress, end - first), _MEASURED_BATCHES
        )
    return Rates.measured(compiling, step, batch, max(test - batch, 0.0))


def _first_and_rest(start, do, count, first=1):
    """Returns the seconds from `start` to the end of the first, and those of each of the others."""
    do(0, first)
    done = time.monotonic()
    do(first, first + count)
    return done - start, (time.monotonic() - done) / count


class Show:
    """What a method's parts show of themselves in the `Stages` of a command.

    Args:
        stages: the `Stages`.
        position: name of the method, with which its stages begin.
    """

    def __init__(self, stages, position):
        self._stages, self._position = stages, position

    def begin(self, stage):
        """Begins a stage of the method."""
        self._stages.begin(f"{self._position}: {stage}")

    def progress(self, steps, rows, stage=None):
        """Returns the `Progress` of steps; a stage begins with the first, when it is compiled."""
        return Progress(
            steps,
            tokens_per_step=rows.batch_size * LENGTH,
            stages=self._stages,
            stage=stage and f"{self._position}: {stage}",
        )


def _training(model, rows, held_out, learning_rate, steps, **optimizer):
    schedule = LinearWarmupDecay(learning_rate, steps, int(WARMUP_SHARE * steps))
    return Training(model, make_machine("one"), rows, held_out, schedule, optimizer)
