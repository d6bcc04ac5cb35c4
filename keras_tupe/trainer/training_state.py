"""The state of a training as named arrays, and back."""

import numpy as np
from keras import ops

from keras_tupe._finite import check_finite


def read_state(trainer):
    """Returns all that a training goes on from: name -> NumPy array.

    Weights and seeds of the model, the state of the optimizer, the counters and the loss scale.
    Under a strategy every worker has all of it.

    Args:
        trainer: a compiled `Trainer`.
    """
    return {
        name: np.asarray(ops.convert_to_numpy(variable.value))
        for name, variable in trainer.state_variables.items()
    }


def write_state(trainer, arrays):
    """Puts a state back.

    Args:
        trainer: a compiled `Trainer` of the same model and optimizer.
        arrays: what `read_state` returned.

    Raises:
        ValueError: naming the first difference, if the state is of another model or optimizer,
            or what is not a number in it. Nothing is changed then.
    """
    variables = trainer.state_variables
    for name, variable in variables.items():
        wanted = (tuple(variable.shape), variable.dtype)
        if name not in arrays:
            raise _difference(f"{name} of shape {wanted[0]}", "nothing of that name")
        received = (arrays[name].shape, str(arrays[name].dtype))
        if received != wanted:
            raise _difference(
                f"{name} of shape {wanted[0]} and type {wanted[1]}",
                f"one of shape {received[0]} and type {received[1]}",
            )
        check_finite(name, arrays[name])
    extra = sorted(set(arrays) - set(variables))
    if extra:
        raise _difference(f"no {extra[0]}", "one")
    for name, variable in variables.items():
        variable.assign(arrays[name])


def _difference(expected, received):
    return ValueError(
        "The state must be one of the same model and optimizer. The first difference: expected "
        f"{expected}. Received: {received}"
    )
