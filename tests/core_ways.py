"""Outputs and gradients of a model, to compare ways of the attention core."""

import keras
import numpy as np
from keras import ops
from tolerances import in_float64

from keras_tupe.layers.attention import core


def outputs_and_gradients(model, given, training=False):
    """Returns the outputs of a model, and the gradients of a sum of them by its weights."""
    generator = np.random.default_rng(1)
    shape = (*given["token_ids"].shape, model.hidden_dim)
    factors = generator.normal(size=shape)

    def loss_of(found):
        return ops.sum(found["sequence_output"] * ops.cast(factors, model.dtype))

    names = [weight.path for weight in model.trainable_weights]
    if keras.backend.backend() == "jax":
        import jax

        others = [weight.value for weight in model.non_trainable_variables]

        def run(weights):
            found, _ = model.stateless_call(weights, others, given, training=training)
            return loss_of(found), found

        weights = [weight.value for weight in model.trainable_weights]
        gradients, found = jax.grad(run, has_aux=True)(weights)
    else:
        import tensorflow as tf

        weights = [weight.value for weight in model.trainable_weights]
        with tf.GradientTape() as tape:
            found = model(given, training=training)
            loss = loss_of(found)
        gradients = tape.gradient(loss, weights, unconnected_gradients="zero")
    return {**found, **dict(zip(names, gradients, strict=True))}


def assert_same(got, wanted):
    tolerance = in_float64(1e-12)
    for name, value in wanted.items():
        value = ops.convert_to_numpy(value)
        np.testing.assert_allclose(
            ops.convert_to_numpy(got[name]),
            value,
            rtol=0,
            atol=tolerance * max(1, np.abs(value).max()),
            err_msg=name,
        )


def go(way, monkeypatch, rows=3):
    """Makes the core take a way, whatever the length: all at once, or blocks of few rows."""
    monkeypatch.setattr(core, "LONGEST_WHOLE", 10**9 if way == "whole" else 0)
    monkeypatch.setattr(core, "MOST_KNOWN", 0 if way == "loop" else 16)
    monkeypatch.setattr(core, "FEWEST_ROWS", rows)
    monkeypatch.setattr(core, "MOST_ROWS", rows)
    monkeypatch.setattr(core, "_rows_of_window", lambda visible: rows)
