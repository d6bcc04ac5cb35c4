"""Cross-entropy in chunks: that of all logits, forward and backward, whatever the chunks are."""

import keras
import numpy as np
import pytest

from keras_tupe.layers._token_losses import token_losses

VOCABULARY, WIDTH = 29, 5
BACKEND = keras.backend.backend()
CHUNKS = [7, 13, None]  # of 26 tokens

pytestmark = pytest.mark.skipif(
    BACKEND not in ("tensorflow", "jax"), reason="all logits at once on other backends"
)


def case(dtype="float64"):
    random = np.random.default_rng(1)
    hidden_states = 3 * random.normal(size=(2, 13, WIDTH))
    labels = random.integers(0, VOCABULARY, (2, 13), "int32")
    weights, embeddings = random.random((2, 13)), random.normal(size=(VOCABULARY, WIDTH))
    labels[:, ::3] = (hidden_states @ embeddings.T).argmax(-1)[:, ::3]
    return hidden_states.astype(dtype), embeddings, labels, weights


def expected(hidden_states, embeddings, labels, weights):
    """Losses, and the gradients of their weighted sum, in NumPy."""
    logits = hidden_states @ embeddings.T
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    one_hot = np.eye(VOCABULARY)[labels]
    slopes = (shares - one_hot) * weights[..., None]
    losses = -np.log((shares * one_hot).sum(-1))
    of_table = np.einsum("btv,btm->vm", slopes, hidden_states)
    return losses, slopes @ embeddings, of_table, logits.argmax(-1) == labels


def found(hidden_states, embeddings, labels, weights, chunk, compiled=False, **kwargs):
    """Losses, gradients and hits of `token_losses`."""

    def scores(x, table):
        return token_losses(x, table, keras.ops.convert_to_tensor(labels), chunk=chunk, **kwargs)

    if BACKEND == "jax":
        import jax

        def loss(x, table):
            losses, hits = scores(x, table)
            return (losses * weights).sum(), (losses, hits)

        with jax.enable_x64(True):
            gradient = jax.grad(loss, argnums=(0, 1), has_aux=True)
            gradient = jax.jit(gradient) if compiled else gradient
            given = jax.numpy.asarray(hidden_states), jax.numpy.asarray(embeddings)
            gradients, (losses, hits) = gradient(*given)
            return [np.asarray(x) for x in (losses, *gradients, hits)]
    import tensorflow as tf

    def gradients(x, table):
        with tf.GradientTape() as tape:
            tape.watch([x, table])
            losses, hits = scores(x, table)
            loss = tf.reduce_sum(losses * tf.cast(weights, losses.dtype))
        return losses, *tape.gradient(loss, [x, table]), hits

    run = tf.function(gradients, jit_compile=True) if compiled else gradients
    return [np.array(x) for x in run(tf.constant(hidden_states), tf.constant(embeddings))]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_losses_and_gradients_are_those_of_all_logits(chunk, compiled):
    given = case()
    losses, of_rows, of_table, hits = expected(*given)
    ours = found(*given, chunk, compiled, accuracy=True)
    for one, other in zip(ours, (losses, of_rows, of_table, hits), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert 0 < hits.sum() < hits.size


def test_hits_are_not_computed_unless_asked():
    assert not found(*case(), 4)[3].any()


@pytest.mark.skipif(BACKEND != "tensorflow", reason="JAX has no unknown lengths")
def test_lengths_may_be_unknown_when_the_graph_is_made():
    import tensorflow as tf

    hidden_states, embeddings, labels, weights = case()
    spec = [tf.TensorSpec((None, None, WIDTH), "float64"), tf.TensorSpec((None, None), "int32")]

    @tf.function(input_signature=spec)
    def gradient(x, labels):
        table = tf.constant(embeddings)
        losses, _ = token_losses(x, table, labels, chunk=4)
        return losses, *tf.gradients(losses * weights, [x, table])

    ours = gradient(tf.constant(hidden_states), tf.constant(labels))
    wanted = expected(hidden_states, embeddings, labels, weights)[:3]
    for one, other in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_losses_of_half_precision_are_in_float32():
    hidden_states, embeddings, labels, weights = case()
    half = [keras.ops.cast(x, "bfloat16") for x in (hidden_states, embeddings)]
    losses, _ = token_losses(*half, keras.ops.convert_to_tensor(labels), chunk=4)
    assert keras.backend.standardize_dtype(losses.dtype) == "float32"
    wide = [np.array(keras.ops.cast(x, "float32"), "float64") for x in half]
    np.testing.assert_allclose(
        np.array(losses), expected(*wide, labels, weights)[0], rtol=0.02, atol=0.05
    )


@pytest.mark.parametrize("chunk", [4, None])
@pytest.mark.parametrize("label", [-1, VOCABULARY])
def test_a_label_outside_the_vocabulary_is_no_number_or_an_error(label, chunk):
    hidden_states, embeddings, labels, weights = case()
    labels = labels.copy()
    labels[1, 3] = label
    if BACKEND == "tensorflow":  # on a CPU
        import tensorflow as tf

        with pytest.raises(tf.errors.InvalidArgumentError, match="label_of_class"):
            found(hidden_states, embeddings, labels, weights, chunk)
        return
    losses = found(hidden_states, embeddings, labels, weights, chunk)[0]
    assert np.argwhere(np.isnan(losses)).tolist() == [[1, 3]]
