"""The quickstart's training: masked language modeling, then the word-order task."""

import dataclasses
import itertools
import math
import sys
import time
import warnings

import keras
import numpy as np
import tensorflow as tf

from keras_tupe import SIZES, TupeBackbone, TupeMaskedLM, TupeTextClassifier
from keras_tupe.trainer import LinearWarmupDecay, Trainer, adamw
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
warnings.filterwarnings("ignore", message=".shuffle=True. was passed, but will be ignored")
BAR = 1 if sys.stdout.isatty() else 2  # a moving bar for people, a line per epoch for logs


@dataclasses.dataclass
class Result:
    """What one method reached.

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


def build(position, data, size, seed):
    """Returns a new masked language model."""
    keras.utils.set_random_seed(seed)
    backbone = TupeBackbone(
        data.tokenizer.vocabulary_size,
        **dataclasses.asdict(SIZES[size]),
        position=position,
        dropout=0.0,
        max_sequence_length=LENGTH,
        normalize_first=True,
        initializer_range=0.09,
    )
    return TupeMaskedLM(backbone)


def pretrain(model, data, steps):
    """Trains by `fit`; returns the trainer and the curve: tokens seen and held-out losses."""
    points = min(CURVE_POINTS, steps)
    schedule = LinearWarmupDecay(LEARNING_RATE, steps, int(WARMUP_SHARE * steps))
    trainer = Trainer(model, train_metrics=False)
    trainer.compile(
        adamw(schedule, beta_2=0.98),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    history = trainer.fit(
        _dataset(data.training.batches),
        steps_per_epoch=steps // points,
        epochs=points,
        validation_data=_held_out(data, CURVE_BATCHES),
        verbose=BAR,
    )
    tokens = (np.arange(points) + 1) * (steps // points) * BATCH_SIZE * LENGTH
    return trainer, tokens.tolist(), history.history["val_loss"]


def evaluate(trainer, data):
    """Returns the loss and the accuracy over all held-out rows, each masked token counted once."""
    scores = trainer.evaluate(_held_out(data), return_dict=True, verbose=BAR)
    return scores["loss"], scores["accuracy"]


def fine_tune(backbone, data, steps, seed):
    """Trains a classifier on the word-order task; returns its accuracy on the test pairs."""
    keras.utils.set_random_seed(seed)
    trainer = Trainer(TupeTextClassifier(backbone, num_classes=2, dropout=0.0))
    schedule = LinearWarmupDecay(TASK_LEARNING_RATE, steps, int(WARMUP_SHARE * steps))
    trainer.compile(adamw(schedule))
    dataset = _dataset(lambda: _pair_batches(data.task_training, seed))
    trainer.fit(dataset, steps_per_epoch=steps, epochs=1, verbose=BAR)
    test = data.task_test
    inputs = {"token_ids": test.token_ids, "padding_mask": test.padding_mask}
    logits = trainer.predict(inputs, batch_size=200, verbose=BAR)
    return float((logits.argmax(axis=1) == test.labels).mean())


def _pair_batches(task, seed):
    """Yields batches of whole pairs, in a new order in every epoch, without end."""
    generator = np.random.default_rng(seed)
    pairs = len(task.labels) // 2
    size = min(TASK_BATCH_SIZE // 2, pairs)
    while True:
        order = generator.permutation(pairs)
        for first in range(0, pairs - size + 1, size):
            rows = (2 * order[first : first + size, np.newaxis] + [0, 1]).ravel()
            inputs = {"token_ids": task.token_ids[rows], "padding_mask": task.padding_mask[rows]}
            yield inputs, task.labels[rows]


def run(position, data, settings, steps, task_steps):
    """Trains and tests one method; returns its `Result` and the pre-trained model."""
    print(f"\n=== {position}: {steps} steps of masked language modeling ===")
    started = time.monotonic()
    model = build(position, data, settings.size, settings.seed)
    trainer, tokens, curve = pretrain(model, data, steps)
    loss, accuracy = evaluate(trainer, data)
    pretrained = model.get_weights()
    print(f"--- {position}: {task_steps} steps of the word-order task ---")
    word_order = fine_tune(model.backbone, data, task_steps, settings.seed)
    model.set_weights(pretrained)  # the task changed the shared encoder
    interval = 1.96 * math.sqrt(word_order * (1 - word_order) / len(data.task_test.labels))
    seconds = time.monotonic() - started
    parameters = model.backbone.count_params()
    return (
        Result(position, parameters, loss, accuracy, word_order, interval, seconds, tokens, curve),
        model,
    )


def steps_for(minutes, positions, data, settings):
    """Returns the steps (pre-training, task) that take about `minutes` on this machine.

    Measures a few steps of the first method; the two parts keep their proportion.
    """
    trainer = Trainer(build(positions[0], data, settings.size, settings.seed))
    trainer.compile(adamw(LEARNING_RATE))
    batches = _dataset(data.training.batches)
    trainer.fit(batches, steps_per_epoch=5, verbose=0)  # compiles
    started = time.monotonic()
    trainer.fit(batches, steps_per_epoch=30, verbose=0)
    seconds = (time.monotonic() - started) / 30
    default = seconds * (STEPS + TASK_STEPS * TASK_BATCH_SIZE / BATCH_SIZE) * len(positions)
    scale = 60 * minutes / default
    return max(1, round(STEPS * scale)), max(1, round(TASK_STEPS * scale))


def _held_out(data, most=None):
    """Returns the held-out batches as a dataset that knows how many they are."""
    count = math.ceil(len(data.held_out) / data.held_out.batch_size)
    count = count if most is None else min(count, most)
    dataset = _dataset(lambda: itertools.islice(data.held_out.evaluation_batches(), count))
    return dataset.apply(tf.data.experimental.assert_cardinality(count))


def _dataset(batches):
    """Returns a dataset of what a function yields."""
    first = next(iter(batches()))
    signature = tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), first)
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(4)
