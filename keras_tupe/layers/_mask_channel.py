"""What masks padded keys: a number added to logits, or a channel of queries and keys."""

from keras import ops


def mask_logits(is_real, masked_logit, dtype):
    """Returns 0 where `is_real` is true and `masked_logit` elsewhere, in `dtype`.

    Both numbers are cast first: Keras makes them of its `floatx`, and float16 ends at 65504.
    """
    return ops.where(is_real, ops.cast(0.0, dtype), ops.cast(masked_logit, dtype))


def with_mask_channel(query, key, is_real, masked_logit):
    """Returns queries and keys with one more channel, whose product masks padded keys.

    The channel is 1 in every query, and 0 or `masked_logit` in a key; so masked logits come out
    of the product itself, and no pass over all of them is needed.

    Args:
        query: `(batch, length, heads, dim)`.
        key: the same.
        is_real: booleans `(batch, 1, 1, length)`.
        masked_logit: what a masked logit gets, before it is scaled.
    """
    shape = (*ops.shape(query)[:3], 1)
    added = mask_logits(ops.transpose(is_real, (0, 3, 1, 2)), masked_logit, key.dtype)
    added = ops.broadcast_to(added, shape)
    query = ops.concatenate([query, ops.ones(shape, query.dtype)], axis=-1)
    return query, ops.concatenate([key, added], axis=-1)
