import keras
import numpy as np
import pytest

from keras_tupe.trainer.losses import Losses

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="Keras's own loss on other backends"
)
CLASSES = 23


def batch(dtype="float64", trailing=False):
    generator = np.random.default_rng(1)
    logits = 20 * generator.normal(size=(3, 5, CLASSES))
    labels = generator.integers(0, CLASSES, (3, 5, 1) if trailing else (3, 5))
    return logits.astype(dtype), labels, generator.random((3, 5))


def sums_and_gradient(losses_of, logits, labels, weights):
    import tensorflow as tf

    logits = tf.convert_to_tensor(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        (loss,) = losses_of.sums(tf.convert_to_tensor(labels), logits, weights)
    (count,) = losses_of.counts(tf.convert_to_tensor(labels), weights)
    return np.array(loss), np.array(count), np.array(tape.gradient(loss, logits))


def cross_entropy(**arguments):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, **arguments)


@pytest.mark.parametrize("trailing", [False, True])
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("reduction", ["mean_with_sample_weight", "sum_over_batch_size"])
def test_sums_and_gradient_are_those_of_the_equation(reduction, jit_compile, trailing):
    import tensorflow as tf

    logits, labels, weights = batch(trailing=trailing)
    losses_of = Losses(cross_entropy(reduction=reduction))
    each = 1 if "weight" in reduction else 5  # values for each that is counted
    run = tf.function(
        lambda z: losses_of.sums(tf.constant(labels), z, weights), jit_compile=jit_compile
    )
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    one_hot = np.eye(CLASSES)[labels.reshape(3, 5)]
    expected = -(weights * np.log((shares * one_hot).sum(-1))).sum()
    np.testing.assert_allclose(run(tf.constant(logits))[0], expected / each, rtol=1e-12)
    loss, count, gradient = sums_and_gradient(losses_of, logits, labels, weights)
    np.testing.assert_allclose(loss, expected / each, rtol=1e-12)
    np.testing.assert_allclose(count, weights.sum() if "weight" in reduction else 3)
    np.testing.assert_allclose(each * gradient, (shares - one_hot) * weights[..., None], atol=1e-12)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_losses_of_half_precision_are_in_float32(dtype):
    logits, labels, weights = batch()
    half = keras.ops.cast(logits, dtype)
    loss, _, gradient = sums_and_gradient(Losses(cross_entropy()), half, labels, weights)
    wide = np.array(keras.ops.cast(half, "float32"))
    expected, _, slope = sums_and_gradient(Losses(cross_entropy()), wide, labels, weights)
    assert loss.dtype == "float32"
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(np.array(gradient, "float32"), slope, atol=1e-2)


def test_a_certain_and_wrong_answer_has_a_finite_loss():
    logits, labels = np.array([[0.0, 1e4]], "float32"), np.array([0])
    loss, _, gradient = sums_and_gradient(Losses(cross_entropy()), logits, labels, None)
    np.testing.assert_allclose([loss, *gradient[0]], [1e4, -1, 1])


@pytest.mark.parametrize("label", [-1, CLASSES])
def test_a_label_outside_is_an_error_or_not_a_number(label):
    import tensorflow as tf

    logits, labels, weights = batch()
    labels[1, 2] = label
    losses_of = Losses(cross_entropy())
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"= {label} is not in \[0, 23\)"):
        losses_of.sums(tf.constant(labels), tf.constant(logits), weights)
    compiled = tf.function(lambda: losses_of.sums(labels, logits, weights), jit_compile=True)
    assert np.isnan(compiled()[0])


@pytest.mark.parametrize("arguments", [{"ignore_class": 3}, {"axis": -1}])
def test_other_losses_stay_keras_s(arguments):
    logits, labels, weights = batch()
    loss = cross_entropy(**arguments)
    found = Losses(loss).sums(labels, logits, weights)[0]
    np.testing.assert_allclose(5 * found, (np.array(loss.call(labels, logits)) * weights).sum())

    class Doubled(keras.losses.SparseCategoricalCrossentropy):
        def call(self, y_true, y_pred):
            return 2 * super().call(y_true, y_pred)

    doubled = Losses(Doubled(from_logits=True, **arguments)).sums(labels, logits, weights)[0]
    np.testing.assert_allclose(doubled, 2 * np.array(found))


def test_labels_of_another_shape_are_refused():
    logits, labels, weights = batch()
    with pytest.raises(ValueError, match="must have the same shape up until the last dimension"):
        Losses(cross_entropy()).sums(labels[:, :4], keras.ops.array(logits), weights)
