"""How long exported encoders take to answer, in turn."""

import pathlib
import tempfile
import time

import numpy as np
import tensorflow as tf

from keras_tupe.export import export_encoder

_WARM = 3


def latencies(backbones, shape, rounds):
    """Exports encoders and times them, each a request at a time, in turn.

    Args:
        backbones: dictionary of name -> `TupeBackbone`.
        shape: `(batch, length)` of a request.
        rounds: requests to each.

    Returns:
        Dictionary of name -> {`median`, `low`, `high`}: the median and the quartiles, milliseconds.
    """
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        served = {}
        for number, (name, backbone) in enumerate(backbones.items()):
            path = pathlib.Path(folder, str(number))
            export_encoder(backbone, path, shape[1])
            served[name] = tf.saved_model.load(str(path))
        first = next(iter(backbones.values()))
        ids = generator.integers(0, first.vocabulary_size, shape).astype("int32")
        inputs = {
            "input_word_ids": tf.constant(ids),
            "input_mask": tf.ones(shape, tf.int32),
            "input_type_ids": tf.zeros(shape, tf.int32),
        }
        times = {name: [] for name in served}
        for turn in range(_WARM + rounds):
            for name, loaded in served.items():
                start = time.perf_counter()
                loaded.signatures["serving_default"](**inputs)["pooled_output"].numpy()
                if turn >= _WARM:
                    times[name].append(1000 * (time.perf_counter() - start))
    return {
        name: dict(
            zip(("low", "median", "high"), np.quantile(found, (0.25, 0.5, 0.75)), strict=True)
        )
        for name, found in times.items()
    }
