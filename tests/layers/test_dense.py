import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe.layers._dense import Dense, HeadsDense

LAYERS = {
    "dense": (Dense, keras.layers.Dense, {"units": 7, "activation": "tanh"}, (3, 5, 11)),
    "to heads": (
        HeadsDense,
        keras.layers.EinsumDense,
        {"equation": "btm,mhd->bthd", "output_shape": (None, 2, 7), "bias_axes": "hd"},
        (3, 5, 11),
    ),
    "from heads": (
        HeadsDense,
        keras.layers.EinsumDense,
        {"equation": "bthd,hdm->btm", "output_shape": (None, 13), "bias_axes": "m"},
        (3, 5, 2, 7),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_outputs_are_those_of_keras(name):
    ours, theirs, arguments, shape = LAYERS[name]
    layer, reference = ours(**arguments, dtype="float64"), theirs(**arguments, dtype="float64")
    generator = np.random.default_rng(1)
    x = generator.standard_normal(shape)
    layer.build(shape)
    reference.build(shape)
    weights = [generator.standard_normal(w.shape) for w in layer.get_weights()]
    layer.set_weights(weights)
    reference.set_weights(weights)
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(x)), ops.convert_to_numpy(reference(x)), atol=1e-12
    )
    assert [w.path.split("/")[-1] for w in layer.weights] == ["kernel", "bias"]


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's gradient")
def test_the_gradient_of_the_bias_is_right_in_bfloat16():
    import tensorflow as tf

    layer = Dense(64, dtype="mixed_bfloat16")
    x = np.random.default_rng(1).standard_normal((8, 256, 16)).astype("float32")
    targets = tf.cast(np.random.default_rng(2).standard_normal((8, 256, 64)) + 0.1, "bfloat16")
    layer.build(x.shape)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.cast(layer(x) * targets, "float32"))
    gradient = tape.gradient(loss, layer.bias.value).numpy()
    expected = tf.cast(targets, "float64").numpy().sum(axis=(0, 1))
    assert np.linalg.norm(gradient - expected) <= 5e-3 * np.linalg.norm(expected)
