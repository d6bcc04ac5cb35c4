"""Batches through tf.data: made by several threads ahead of their use, in order."""


def tf_dataset(rows, start_step=0, num_steps=None, *, num_parallel_calls=2, prefetch=2):
    """Training batches as a `tf.data.Dataset`: element i is `rows.batch(start_step + i)`.

    All shapes are static, but for the width of `Padded`. A strategy in one process splits each
    batch among its replicas; of several processes each makes the data set of its `rows.shard(...)`.

    Args:
        rows: a `Rows`, a `Padded` or a `WordOrderRows`.
        start_step: number of the first batch, >= 0.
        num_steps: number of batches, or `None` for no end.
        num_parallel_calls: threads that make batches. Defaults to 2.
        prefetch: finished batches that wait at most. Defaults to 2.

    Returns:
        Data set of `(inputs, labels, weights)`. Errors of the reader become `tf.errors.OpError`s,
        and their messages stay within.
    """
    if start_step < 0 or (num_steps is not None and num_steps < 0):
        raise ValueError(
            "`start_step` and `num_steps` must be at least 0. "
            f"Received: start_step={start_step}, num_steps={num_steps}"
        )
    return _dataset(rows, rows.batch, start_step, num_steps, num_parallel_calls, prefetch)


def tf_evaluation_dataset(rows, *, num_parallel_calls=2, prefetch=2):
    """Evaluation batches as a `tf.data.Dataset`: those of `rows.evaluation_batches()`.

    Args:
        rows, num_parallel_calls, prefetch: as in `tf_dataset`.
    """
    num_steps = rows.num_evaluation_batches
    return _dataset(rows, rows.evaluation_batch, 0, num_steps, num_parallel_calls, prefetch)


def _dataset(rows, make_batch, start_step, num_steps, num_parallel_calls, prefetch):
    import tensorflow as tf

    signature = rows.signature
    specs = _flat(signature)

    def arrays(step):
        return _flat(make_batch(int(step)))

    def batch(step):
        tensors = tf.numpy_function(arrays, [step], [dtype for _, dtype in specs])
        for tensor, (shape, _) in zip(tensors, specs, strict=True):
            tensor.set_shape(shape)
        return _like(signature, tensors)

    steps = tf.data.Dataset.counter(start_step)
    steps = steps if num_steps is None else steps.take(num_steps)
    options = tf.data.Options()
    # TensorFlow knows of no files here: `Rows.shard` divides the work among processes.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    dataset = steps.map(batch, num_parallel_calls=num_parallel_calls, deterministic=True)
    return dataset.prefetch(prefetch).with_options(options)


def _flat(parts):
    """What inputs, labels and weights hold, in a list: each may be a dictionary."""
    lists = [[*part.values()] if isinstance(part, dict) else [part] for part in parts]
    return [item for items in lists for item in items]


def _like(parts, items):
    """The items of a list as `_flat` found them."""
    items = iter(items)
    return tuple(
        {name: next(items) for name in part} if isinstance(part, dict) else next(items)
        for part in parts
    )
