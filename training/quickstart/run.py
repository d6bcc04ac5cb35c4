"""One method of the quickstart: masked language modeling, then the word-order task."""

import dataclasses
import io
import math
import time

import keras
import numpy as np

from keras_tupe import SIZES, TupeBackbone, TupeMaskedLM, TupeTextClassifier, data
from keras_tupe.trainer import LinearWarmupDecay
from training.machine.devices import make_machine
from training.pretrain.loop import Training
from training.pretrain.progress import Progress
from training.quickstart.data import LENGTH

# Settings in which positions can be seen to matter within minutes. Pre-LN and the wide
# initialization are not TUPE's trunk; at this size and length its own learns too slowly.
BATCH_SIZE = 32
LEARNING_RATE = 3e-3
STEPS = 2200
TASK_BATCH_SIZE = 64
TASK_LEARNING_RATE = 1e-3
TASK_STEPS = 400
WARMUP_SHARE = 0.06
CURVE_POINTS = 20
CURVE_BATCHES = 40  # held-out batches behind each point of the curve


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
        initializer_range=0.09,
    )
    return TupeMaskedLM(backbone)


def pretrain(model, corpus, steps):
    """Trains a new masked language model and tests it, now and then and at the end.

    Args:
        model: what `build` made.
        corpus: a `QuickstartData`.
        steps: steps of the learning rate's way down; as many are done as the curve's points divide.

    Returns:
        `((tokens, losses), (loss, accuracy))`: the curve, tokens seen and the loss on some
        held-out rows; and the scores on all of them, each masked token counted once.
    """
    points = min(CURVE_POINTS, steps)
    every = steps // points
    training = _training(model, corpus.training, corpus.held_out, LEARNING_RATE, steps, beta_2=0.98)
    losses = []
    with _progress(points * every, corpus.training) as progress:
        for step in range(every, points * every + 1, every):
            training.fit(step - every, step, progress)
            losses.append(training.evaluate(step, progress, CURVE_BATCHES)[0])
        scores = training.evaluate(step, progress)
    tokens = (np.arange(points) + 1) * every * BATCH_SIZE * LENGTH
    return (tokens.tolist(), losses), scores


def fine_tune(backbone, corpus, steps, seed):
    """Trains a classifier on the word-order task; returns its accuracy on the test pairs."""
    keras.utils.set_random_seed(seed)
    rows = data.WordOrderRows(corpus.task_training, batch_size=TASK_BATCH_SIZE, seed=seed)
    model = TupeTextClassifier(backbone, num_classes=2, dropout=0.0)
    training = _training(model, rows, None, TASK_LEARNING_RATE, steps)
    with _progress(steps, rows) as progress:
        training.fit(0, steps, progress)
    test = corpus.task_test
    inputs = {"token_ids": test.token_ids, "padding_mask": test.padding_mask}
    logits = training.trainer.predict(inputs, batch_size=200, verbose=0)
    return float((logits.argmax(axis=1) == test.labels).mean())


def run(position, corpus, settings, steps, task_steps):
    """Trains and tests one method; returns its `Result` and the pre-trained model."""
    print(f"\n=== {position}: {steps} steps of masked language modeling ===", flush=True)
    started = time.monotonic()
    model = build(position, corpus, settings.size, settings.seed)
    (tokens, losses), (loss, accuracy) = pretrain(model, corpus, steps)
    pretrained = model.get_weights()
    print(f"--- {position}: {task_steps} steps of the word-order task ---", flush=True)
    word_order = fine_tune(model.backbone, corpus, task_steps, settings.seed)
    model.set_weights(pretrained)  # the task changed the shared encoder
    interval = 1.96 * math.sqrt(word_order * (1 - word_order) / len(corpus.task_test.labels))
    seconds = time.monotonic() - started
    parameters = model.backbone.count_params()
    return (
        Result(position, parameters, loss, accuracy, word_order, interval, seconds, tokens, losses),
        model,
    )


def steps_for(minutes, positions, corpus, settings):
    """Returns the steps (pre-training, task) that take about `minutes` on this machine.

    Measures a few steps of the first method; the two parts keep their proportion.
    """
    model = build(positions[0], corpus, settings.size, settings.seed)
    training = _training(model, corpus.training, None, LEARNING_RATE, 35)
    with _progress(35, corpus.training, stream=io.StringIO()) as progress:
        training.fit(0, 5, progress)  # compiles
        started = time.monotonic()
        training.fit(5, 35, progress)
    seconds = (time.monotonic() - started) / 30
    default = seconds * (STEPS + TASK_STEPS * TASK_BATCH_SIZE / BATCH_SIZE) * len(positions)
    scale = 60 * minutes / default
    return max(1, round(STEPS * scale)), max(1, round(TASK_STEPS * scale))


def _training(model, rows, held_out, learning_rate, steps, **optimizer):
    schedule = LinearWarmupDecay(learning_rate, steps, int(WARMUP_SHARE * steps))
    return Training(model, make_machine("one"), rows, held_out, schedule, optimizer)


def _progress(steps, rows, stream=None):
    """Returns the bar of a part, without the share of a peak, which would have to be measured."""
    tokens = rows.batch_size * LENGTH
    return Progress(
        steps, tokens_per_step=tokens, flops_per_step=None, peak_flops=None, stream=stream
    )
