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
        starts: int32 tensor `(blocks,)`, for steps of a loop; a list of integers for blocks that
            follow each other in the graph.
        blocked: tree of tensors whose first axis are the blocks.
        whole: tree of tensors.
        dtype: dtype of what the function gives.
    """
    entries, others = keras.tree.flatten(blocked), keras.tree.flatten(whole)

    def again(start, *tensors):
        is_known = isinstance(start, int)

        def of(*tensors):
            at, *tensors = (start, *tensors) if is_known else tensors
            return function(at, *keras.tree.pack_sequence_as((blocked, whole), tensors))

        if traced_for() is None and not is_saved():  # a file holds no gradients of our own
            of = keras.remat(of)
        return of(*tensors) if is_known else of(start, *tensors)

    if isinstance(starts, list):
        found = []
        for number, start in enumerate(starts):
            given = [*(x[number] for x in entries), *others]
            if found:  # one after the other, also where XLA orders them
                before = ops.stop_gradient(ops.ravel(found[-1])[0]) * 0
                given[0] = given[0] + ops.cast(before, given[0].dtype)
            found.append(again(start, *given))
        return ops.stack(found)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.map_fn(
            lambda some: again(*some, *others),
            (starts, *entries),
            fn_output_signature=dtype,
            parallel_iterations=1,
        )
    return ops.map(lambda some: again(*some, *others), (starts, *entries))
