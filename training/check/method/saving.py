"""An encoder with a method goes to files and comes back the same."""

import inspect
import json
import pathlib
import tempfile

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_tupe.models import TupeBackbone
from training.check.compare import require, require_near
from training.check.method.cases import encoder, inputs, outputs, random_ids, shared_encoder


def require_same(model, other, given, what):
    """Raises `BrokenPromiseError` unless two encoders answer the same to the last bit."""
    for got, wanted in zip(outputs(other, given), outputs(model, given), strict=True):
        require_near(got, wanted, 0, what)


def check_config(case):
    """Checks that the config names every argument and makes the same encoder."""
    model = encoder(case, "mixed_bfloat16", num_segments=2, normalize_first=True)
    config = model.get_config()
    json.dumps(keras.saving.serialize_keras_object(model))
    clone = TupeBackbone.from_config(config)
    require(clone.get_config() == config, "An encoder made of a config must have that config.")
    for get, what in ((lambda w: w.path, "paths"), (lambda w: tuple(w.shape), "shapes")):
        got, wanted = ([get(weight) for weight in made.weights] for made in (clone, model))
        require(got == wanted, f"The {what} of weights change when an encoder is made anew.")
    require(clone.dtype_policy.name == "mixed_bfloat16", "The precision policy must be kept.")


def check_layers_configs(case):
    """Checks that each layer of the method is made again by its class and its `get_config`."""
    model = encoder(case, "float32", num_layers=1)
    layers = [layer for layer in model.layers if layer.name in _OF_METHODS]
    layers.append(model.get_layer("block_0").attention)
    for layer in layers:
        kind = type(layer)
        arguments = inspect.signature(kind.__init__).parameters.values()
        missing = [
            one.name
            for one in arguments
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
            and one.name not in ("self", *layer.get_config())
        ]
        require(
            not missing,
            f"`get_config` of {kind.__name__} must return every argument of the constructor. "
            f"Received: none for {', '.join(map(repr, missing))}.",
        )
        config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
        made = keras.saving.deserialize_keras_object(config)
        require(
            type(made) is kind and _plain(made.get_config()) == _plain(layer.get_config()),
            f"{kind.__name__} must be made again, the same, by what its `get_config` returns.",
        )


_OF_METHODS = ("position_embedding", "position_bias", "shared_positions")


def _plain(config):
    return json.dumps(config, sort_keys=True, default=str)


def check_keras_file(case, folder):
    """Checks that a `.keras` file and a file of weights give the same answers.

    Args:
        case: a `Case`.
        folder: where to write.
    """
    folder, model = pathlib.Path(folder), shared_encoder(case)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    require_same(model, loaded, given, "The answers of a loaded .keras file differ")
    model.save_weights(folder / "model.weights.h5")
    fresh = encoder(case, scale=None)
    require(
        np.abs(outputs(fresh, given)[0] - outputs(model, given)[0]).max() > 1e-3,
        "New weights must give other answers.",
    )
    fresh.load_weights(folder / "model.weights.h5")
    require_same(model, fresh, given, "The answers of loaded weights differ")


def check_preset(case, folder):
    """Checks that a preset loads through our class and through KerasHub.

    Args:
        case: a `Case`.
        folder: where to write.
    """
    model = encoder(case, "float32", num_layers=1)
    model.save_to_preset(str(folder))
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    for loader in (TupeBackbone, keras_hub.models.Backbone):
        loaded = loader.from_preset(str(folder))
        require(type(loaded) is TupeBackbone, "A preset must come back as a TupeBackbone.")
        require(
            (loaded.position, loaded.position_options) == (case.name, model.position_options),
            "A preset must keep the method and its options.",
        )
        require_same(model, loaded, given, "The answers of a loaded preset differ")


def check_saved_model(case, folder):
    """Checks that an exported SavedModel answers as Keras does; needs TensorFlow.

    Args:
        case: a `Case`.
        folder: where to write.
    """
    import tensorflow as tf

    from keras_tupe.export import export_encoder

    length = 7
    model = encoder(case, "float32")
    path = pathlib.Path(folder) / "saved_model"
    export_encoder(model, path, length=length)
    given = inputs(random_ids(3, length), lengths=[7, 4, 1])
    wanted = outputs(model, given)
    loaded = tf.saved_model.load(str(path))
    ids, mask = (tf.constant(given[name]) for name in ("token_ids", "padding_mask"))
    words = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": tf.zeros_like(ids)}
    served = loaded.signatures["serving_default"](**words)
    called = loaded(words, training=False)
    for answer, what in ((served, "signature"), (called, "function")):
        for got, want in zip(("sequence_output", "pooled_output"), wanted, strict=True):
            require_near(
                answer[got].numpy(), want, 2e-5, f"The {got} of a SavedModel's {what} differs"
            )


def in_new_folder(check):
    """Returns a check of a case in a folder of its own, which is removed."""

    def run(case):
        with tempfile.TemporaryDirectory() as folder:
            check(case, folder)

    return run


def check_training_step(case):
    """Checks that compiled training steps lower a loss."""
    keras.utils.set_random_seed(7)
    model = encoder(case, "float32", num_layers=1, scale=None)
    given = inputs(random_ids(4, 7), lengths=[7, 4, 1, 0])
    target = {"pooled_output": np.tanh(np.random.normal(size=(4, 10))), "sequence_output": None}
    model.compile(
        keras.optimizers.Adam(0.05),
        loss={"pooled_output": "mse", "sequence_output": None},
        jit_compile=False,
    )
    losses = [float(np.ravel(model.train_on_batch(given, target))[0]) for _ in range(15)]
    require(
        losses[-1] < 0.5 * losses[0],
        "15 compiled training steps must halve a simple loss. Received: from "
        f"{losses[0]:.3g} to {losses[-1]:.3g}.",
    )
    for weight in model.weights:
        require(np.isfinite(ops.convert_to_numpy(weight)).all(), f"{weight.path} must be finite.")
