"""The answers of a loop, one above the other."""

from keras import ops

from keras_tupe.layers._conversion import conversion_format


def stacked(step, count, shape, dtype):
    """Returns `step(0)` .. `step(count - 1)`, stacked along a new first axis.

    Args:
        step: function of an integer tensor, returns a tensor.
        count: number of steps, an integer or a scalar tensor.
        shape: shape of one answer, integers or scalar tensors.
        dtype: dtype of the answers.

    Returns:
        Tensor `(count, *shape)`.
    """
    if conversion_format() == "onnx":  # slices are updated by an op of XLA's
        return ops.map(step, ops.arange(count, dtype="int32"))
    rest = (0,) * len(shape)

    def put(index, out):
        return ops.slice_update(out, (index, *rest), ops.expand_dims(step(index), 0))

    return ops.fori_loop(0, count, put, ops.zeros((count, *shape), dtype))
