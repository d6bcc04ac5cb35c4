"""JAX's fused attention, such as cuDNN's on GPUs, for the terms that it computes right."""

import contextlib
import contextvars

import keras
from keras import ops

from keras_tupe.attention_patterns import Visible
from keras_tupe.layers.attention.terms import Bias, Pattern, Products

LARGEST_WIDTH = 256  # of a head in cuDNN
_IMPLEMENTATION = contextvars.ContextVar("implementation of fused attention", default=None)


@contextlib.contextmanager
def fused_attention(implementation="cudnn"):
    """Inside, attention is traced with `jax.nn.dot_product_attention`, or refused.

    A switch for measuring: compile a model inside of it, and the same model outside. Low-rank
    position terms and the padding mask are channels of queries and keys, so that no bias is needed:

        q' = [q, p_q / scale, 1],  k' = [k, p_k, mask / scale],  logits = scale q' . k'

    They are rounded to the dtype of the values, as cuDNN takes half precision alone, where the
    core keeps logits in float32; the width is padded to a multiple of 8, the values to that width.

    Args:
        implementation: as in JAX: `"cudnn"`, or `"xla"`, which runs everywhere, for tests.
    """
    token = _IMPLEMENTATION.set(implementation)
    try:
        yield
    finally:
        _IMPLEMENTATION.reset(token)


def fused_implementation():
    """Returns the implementation that attention is traced with, or `None`."""
    return _IMPLEMENTATION.get()


def attend_fused(terms, value, mask, dropout, normalize=None):
    """Returns the sums of values, `(heads, batch, length, key_dim)`; see `core.attend`.

    Args:
        terms, value, dropout, normalize: as there.
        mask: what `key_mask` returned, or `None`.

    Raises:
        ValueError: where the result would be another one; the message says why.
    """
    reason = why_not(terms, value, dropout, normalize)
    if reason is not None:
        raise ValueError(
            f"Fused attention is not what this model computes: {reason}. Leave out "
            "`fused_attention()`, and the attention core of the package is used. Received: "
            f"{[type(term).__name__ for term in terms]}, values of dtype {value.dtype}"
        )
    import jax

    query, key = _channels(terms[0], mask)
    width = -(-query.shape[-1] // 8) * 8
    query, key, padded = (
        ops.cast(ops.transpose(_padded(x, width), (1, 2, 0, 3)), value.dtype)
        for x in (query, key, value)
    )
    _, visible = _parts(terms[0])
    window = visible and visible.has_window and (visible.left, visible.right)
    found = jax.nn.dot_product_attention(
        query,
        key,
        padded,
        scale=terms[0].scale,
        is_causal=visible is not None and visible.is_causal,
        local_window_size=window or None,
        implementation=fused_implementation(),
    )
    return ops.transpose(found, (2, 0, 1, 3))[..., : value.shape[-1]]


def why_not(terms, value, dropout, normalize=None):
    """Returns the reason why fused attention would compute something else, or `None`.

    Args:
        terms, value, dropout, normalize: as in `core.attend`.
    """
    if keras.backend.backend() != "jax":
        return f"it is JAX's, and Keras runs on {keras.backend.backend()}"
    if dropout is not None:
        return "JAX's function drops no scores, and the model has attention dropout in training"
    if normalize is not None:
        return "its scores are no softmax of its logits"
    if len(terms) > 1 or not isinstance(terms[0], Products):
        return "its logits depend on content and distance together, which no channel can hold"
    bias, visible = _parts(terms[0])
    if bias is not None and bias.factors is None:
        return "its position bias is a function of distance, or free, and has no low rank"
    plain = visible is not None and visible == Visible(visible.left, visible.right)
    if visible is not None and not (plain and (visible.has_window or visible.left is None)):
        return "its attention pattern is neither causal nor a plain window"
    width = value.shape[-1] + (bias.factors[0].shape[-1] if bias else 0) + 1
    if fused_implementation() == "cudnn":
        if keras.backend.standardize_dtype(value.dtype) not in ("bfloat16", "float16"):
            return "cuDNN takes half precision alone"
        if width > LARGEST_WIDTH:
            return f"a head would have {width} channels, and cuDNN takes {LARGEST_WIDTH}"
    return None


def _parts(products):
    """Returns the position bias and the pattern of a term, each `None` if there is none."""
    bias = [term for term in products.biases if isinstance(term, Bias)]
    patterns = [term.visible for term in products.biases if isinstance(term, Pattern)]
    return (bias or [None])[0], (patterns or [None])[0]


def _channels(products, mask):
    query, key = products.rows[0], products.keys[0]
    parts = [(query, key)]
    bias, _ = _parts(products)
    if bias is not None:
        of_query, of_key = bias.factors
        parts.append((of_query / products.scale, of_key))
    if mask is not None:
        of_key = ops.swapaxes(mask, -1, -2) / products.scale
        parts.append((ops.ones_like(query[..., :1]), of_key))
    leading = ops.shape(query)[:3]
    return (
        ops.concatenate([ops.broadcast_to(x, (*leading, x.shape[-1])) for x in side], axis=-1)
        for side in zip(*parts, strict=True)
    )


def _padded(x, width):
    return ops.pad(x, ((0, 0), (0, 0), (0, 0), (0, width - x.shape[-1])))
