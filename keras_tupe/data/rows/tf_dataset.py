"""Batches through tf.data: made by several threads ahead of their use, in order."""

from keras_tupe.check import integer


def tf_dataset(rows, start_step=0, num_steps=None, *, num_parallel_calls=2):
    """Training batches as a `tf.data.Dataset`: element i is `rows.batch(start_step + i)`.

    All shapes are static, but for the width of `Padded`. A strategy in one process splits each
    batch among its replicas; of several processes each makes the data set of its `rows.shard(...)`.

    Args:
        rows: a `Rows`, a `Padded` or a `WordOrderRows`.
        start_step: number of the first batch, >= 0.
        num_steps: number of batches, or `None` for no end.
        num_parallel_calls: threads that make batches. Defaults to 2.

    Returns:
        Data set of `(inputs, labels, weights)`. Errors of the reader become `tf.errors.OpError`s,
        and their messages stay within.
    """
    import tensorflow as tf

    integer("start_step", start_step, 0)
    if num_steps is not None:
        integer("num_steps", num_steps, 0)

    def spec(part):
        if isinstance(part, dict):
            return {name: spec(value) for name, value in part.items()}
        return tf.TensorSpec(*part)

    like = tuple(map(spec, rows.signature))
    specs = tf.nest.flatten(like)

    def arrays(step):
        return tf.nest.flatten(rows.batch(int(step)))

    def batch(step):
        tensors = tf.numpy_function(arrays, [step], [one.dtype for one in specs])
        for tensor, one in zip(tensors, specs, strict=True):
            tensor.set_shape(one.shape)
        return tf.nest.pack_sequence_as(like, tensors)

    steps = tf.data.Dataset.counter(start_step)
    steps = steps if num_steps is None else steps.take(num_steps)
    options = tf.data.Options()
    # TensorFlow knows of no files here: `Rows.shard` divides the work among processes.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    dataset = steps.map(batch, num_parallel_calls=num_parallel_calls, deterministic=True)
    return dataset.prefetch(2).with_options(options)
