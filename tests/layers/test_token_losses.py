"""Cross-entropy in chunks: that of all logits, forward and backward, whatever the chunks are."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe.layers._token_losses import token_losses

VOCABULARY, WIDTH = 29, 5
BACKEND = keras.backend.backend()
RANDOM = np.random.default_rng(1)
X, TABLE = 3 * RANDOM.normal(size=(2, 13, WIDTH)), RANDOM.normal(size=(VOCABULARY, WIDTH))
LABELS, WEIGHTS = RANDOM.integers(0, VOCABULARY, (2, 13), "int32"), RANDOM.random((2, 13))
LABELS[:, ::3] = (X @ TABLE.T).argmax(-1)[:, ::3]

pytestmark = pytest.mark.skipif(
    BACKEND not in ("tensorflow", "jax"), reason="all logits at once on other backends"
)


def expected(x=X, table=TABLE):
    """Losses, the gradients of their weighted sum, and hits, in NumPy."""
    logits = x @ table.T
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    one_hot = np.eye(VOCABULARY)[LABELS]
    slopes = (shares - one_hot) * WEIGHTS[..., None]
    of_table = np.einsum("btv,btm->vm", slopes, x)
    hits = logits.argmax(-1) == LABELS
    return -np.log((shares * one_hot).sum(-1)), slopes @ table, of_table, hits


def found(chunk, labels=LABELS, compiled=False, open_length=False):
    """Losses, gradients and hits of `token_losses`."""

    def scores(x, table):
        return token_losses(x, table, ops.convert_to_tensor(labels), accuracy=True, chunk=chunk)

    if BACKEND == "jax":
        import jax

        def loss(x, table):
            losses, hits = scores(x, table)
            return (losses * WEIGHTS).sum(), (losses, hits)

        gradient = jax.grad(loss, argnums=(0, 1), has_aux=True)
        gradients, (losses, hits) = (jax.jit(gradient) if compiled else gradient)(X, TABLE)
        return [np.asarray(x) for x in (losses, *gradients, hits)]
    import tensorflow as tf

    def gradients(x, table):
        with tf.GradientTape() as tape:
            tape.watch([x, table])
            losses, hits = scores(x, table)
            loss = tf.reduce_sum(losses * WEIGHTS)
        return losses, *tape.gradient(loss, [x, table]), hits

    specs = [tf.TensorSpec((2, None if open_length else 13, WIDTH), "float64")]
    specs.append(tf.TensorSpec(TABLE.shape, "float64"))
    run = tf.function(gradients, jit_compile=compiled, input_signature=specs, autograph=False)
    return [np.array(x) for x in run(tf.constant(X), tf.constant(TABLE))]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("chunk", [1, 4, 13, 27, None])  # of 26 tokens
def test_losses_and_gradients_are_those_of_all_logits(chunk, compiled):
    for one, other in zip(found(chunk, compiled=compiled), expected(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert not np.any(token_losses(*map(ops.convert_to_tensor, (X, TABLE, LABELS)))[1]), "unasked"


@pytest.mark.skipif(BACKEND != "tensorflow", reason="JAX has no unknown lengths")
def test_lengths_may_be_unknown_when_the_graph_is_made():
    for one, other in zip(found(4, open_length=True), expected(), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_losses_of_half_precision_are_in_float32():
    half = [ops.cast(x, "bfloat16") for x in (X, TABLE)]
    losses, _ = token_losses(*half, ops.convert_to_tensor(LABELS), chunk=4)
    assert keras.backend.standardize_dtype(losses.dtype) == "float32"
    wide = [np.array(ops.cast(x, "float32"), "float64") for x in half]
    np.testing.assert_allclose(np.array(losses), expected(*wide)[0], rtol=0.02, atol=0.05)


@pytest.mark.parametrize("chunk", [4, None])
@pytest.mark.parametrize("label", [-1, VOCABULARY])
def test_a_label_outside_the_vocabulary_is_no_number_or_an_error(label, chunk):
    labels = LABELS.copy()
    labels[1, 3] = label
    if BACKEND == "tensorflow":  # on a CPU
        import tensorflow as tf

        with pytest.raises(tf.errors.InvalidArgumentError, match="label_of_class"):
            found(chunk, labels)
        return
    assert np.argwhere(np.isnan(found(chunk, labels)[0])).tolist() == [[1, 3]]
