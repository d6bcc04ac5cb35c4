"""What a function gives for blocks of positions, one after the other, and back."""

import keras
from keras import ops

from keras_tupe.layers._exporting import is_saved
from keras_tupe.layers._tracing import traced_for


def over_blocks(function, starts, blocked, whole, dtype):
    """Returns what a function gives for each block, stacked; the backward pass makes it again.

    So no more than one block is alive at a time. The function must compute with the tensors that it
    is given alone: others would get no gradient.

    Args:
        function: (start, entries of `blocked`, `whole`) -> tensor of the given dtype.
        starts: int32 tensor `(blocks,)`.
        blocked: tree of tensors whose first axis are the blocks.
        whole: tree of tensors.
        dtype: dtype of what the function gives.
    """
    entries, others = keras.tree.flatten(blocked), keras.tree.flatten(whole)

    def again(start, *tensors):
        def of(at, *tensors):
            return function(at, *keras.tree.pack_sequence_as((blocked, whole), tensors))

        if traced_for() is None and not is_saved():  # a file holds no gradients of our own
            of = keras.remat(of)
        return of(start, *tensors)

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.map_fn(
            lambda some: again(*some, *others),
            (starts, *entries),
            fn_output_signature=dtype,
            parallel_iterations=1,
        )
    return ops.map(lambda some: again(*some, *others), (starts, *entries))
