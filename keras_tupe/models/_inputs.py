"""What enters a model is checked before Keras casts it."""

import keras


def check_inputs(inputs, names):
    """Checks the dictionary of inputs of a model at the door.

    A functional Keras model would cast floats to token ids silently, and would fail on
    shapes that do not fit from inside the graph.

    Args:
        inputs: what the model was called with.
        names: names of the model's inputs.

    Raises:
        ValueError: if an input is missing, or `token_ids`, `padding_mask` and `segment_ids` do
            not have one shape `(batch, length)`.
        TypeError: if ids or positions are not integers.
    """
    if not isinstance(inputs, dict) or set(names) - set(inputs):
        received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        raise ValueError(
            f"The model takes a dictionary with the inputs {sorted(names)}. A preprocessor makes "
            f"it from text. Received: {received}"
        )
    for name in names:
        dtype = keras.backend.standardize_dtype(inputs[name].dtype)
        if "int" not in dtype and not (name == "padding_mask" and dtype == "bool"):
            expected = "integers or booleans" if name == "padding_mask" else "integers"
            raise TypeError(
                f"`{name}` must hold {expected}. Cast it to int32. Received: dtype {dtype}"
            )
    shape = tuple(inputs["token_ids"].shape)
    for name in ("token_ids", "padding_mask", "segment_ids"):
        if name in names and not _fits(tuple(inputs[name].shape), shape):
            raise ValueError(
                f"`token_ids` must have the shape (batch, length) and `{name}` must have the same. "
                f"Received: token_ids of shape {shape}, {name} of shape "
                f"{tuple(inputs[name].shape)}"
            )


def _fits(shape, token_shape):
    return len(shape) == len(token_shape) == 2 and all(
        a is None or b is None or a == b for a, b in zip(shape, token_shape, strict=True)
    )
