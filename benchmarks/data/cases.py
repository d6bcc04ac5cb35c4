"""The cases that `benchmarks.data` times, and how."""

import collections
import importlib.util
import statistics
import time

from benchmarks.harness.rounds import quartiles, turns
from keras_tupe.data.rows.counter_rng import permute
from keras_tupe.data.rows.masking import Masking
from keras_tupe.data.rows.rows import Rows
from keras_tupe.data.rows.tf_dataset import tf_dataset

THREADS = 2
DEFINITION = (
    "Rows per second of wall time: median and quartiles over interleaved rounds, every other "
    "round in reverse order and one before them not counted; each turn takes the next batches. "
    "tf.data is set up anew in each turn, with 2 threads. The files are in the operating system's "
    "cache after the first turn."
)
_SEED = 1


def cases_for(source, settings):
    """Returns the cases, label -> function (first step, number of steps), and what is left out.

    Args:
        source: a `PreparedRows`.
        settings: a `Settings`.
    """

    def read(first, count):
        for step in range(first, first + count):
            examples = range(step * settings.batch_size, (step + 1) * settings.batch_size)
            places = [example % len(source) for example in examples]
            epochs = [example // len(source) for example in examples]
            source[permute(_SEED, "rows: order", epochs, places, len(source))]

    def in_this_thread(rows):
        def turn(first, count):
            for step in range(first, first + count):
                rows.batch(step)

        return turn

    def through_tf_data(rows):
        def turn(first, count):
            dataset = tf_dataset(rows, first, count, num_parallel_calls=THREADS)
            collections.deque(dataset, maxlen=0)

        return turn

    cases = {"read only": read}
    has_tensorflow = importlib.util.find_spec("tensorflow") is not None
    for name, whole_word in (("tokens", False), ("whole words", True)):
        masking = Masking.of(source.vocabulary, whole_word=whole_word)
        rows = Rows(source, masking, batch_size=settings.batch_size, seed=_SEED)
        cases[f"{name}, one thread"] = in_this_thread(rows)
        if has_tensorflow:
            cases[f"{name}, tf.data, {THREADS} threads"] = through_tf_data(rows)
    left_out = None if has_tensorflow else "tf.data is left out: TensorFlow is not installed."
    steps = settings.rows // settings.batch_size
    return {label: (turn, steps) for label, turn in cases.items()}, left_out


def measure(cases, rounds, rows, tick):
    """Times the cases in turn.

    Args:
        cases: dictionary, label -> (function (first step, number of steps), number of steps).
        rounds: number of rounds, > 0.
        rows: rows of each turn.
        tick: function without arguments, called after each turn of each of `rounds + 1` rounds.

    Returns:
        A list of dictionaries: `label`, `rows_per_second` (median), `quartiles`.
    """
    speeds = {label: [] for label in cases}
    for index, label in turns(cases, rounds):
        turn, steps = cases[label]
        started = time.perf_counter()
        turn(index * steps, steps)
        speeds[label].append(rows / (time.perf_counter() - started))
        tick()
    return [
        {
            "label": label,
            "rows_per_second": statistics.median(values[1:]),
            "quartiles": quartiles(values[1:]),
        }
        for label, values in speeds.items()
    ]
