"""A mask that enters the products of queries and keys."""

from keras import ops


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
    added = ops.where(ops.transpose(is_real, (0, 3, 1, 2)), 0.0, masked_logit)
    added = ops.broadcast_to(ops.cast(added, key.dtype), shape)
    query = ops.concatenate([query, ops.ones(shape, query.dtype)], axis=-1)
    return query, ops.concatenate([key, added], axis=-1)
