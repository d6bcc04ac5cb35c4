"""Checks of the inputs of a model before Keras casts them."""

import keras

from keras_tupe._keras_private.layers import in_symbolic_scope
from keras_tupe.layers._checks import concrete


def check_inputs(inputs, names, floats=()):
    """Refuses missing inputs, other shapes and floats, which a Keras model would cast silently."""
    if in_symbolic_scope():
        return  # under a strategy Keras builds models on the mean of the replicas' ids, fractions
    if not isinstance(inputs, dict) or set(names) - set(inputs):
        received = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        raise ValueError(
            f"The model takes a dictionary with the inputs {sorted(names)}. A preprocessor makes "
            f"it from text. Received: {received}"
        )
    shapes = {name: tuple(inputs[name].shape) for name in names}
    for name in names:
        dtype = keras.backend.standardize_dtype(inputs[name].dtype)
        is_mask = name.endswith("padding_mask")
        if name not in floats and "int" not in dtype and not (is_mask and dtype == "bool"):
            expected = "integers or booleans" if is_mask else "integers"
            raise TypeError(
                f"`{name}` must hold {expected}. Cast it to int32. Received: dtype {dtype}"
            )
        side, kind = split_name(name)
        ids, shape = f"{side}token_ids", shapes[name]
        is_row = kind in ("token_ids", "padding_mask", "segment_ids")
        if is_row and not (len(shape) == len(shapes[ids]) == 2 and _same(shape, shapes[ids])):
            raise ValueError(
                f"`{ids}` must have the shape (batch, length) and `{name}` must have the same. "
                f"Received: {ids} of shape {shapes[ids]}, {name} of shape {shape}"
            )
    if "encoder_token_ids" in names:
        source, target = shapes["encoder_token_ids"], shapes["decoder_token_ids"]
        if not _same(source[:1], target[:1]):
            raise ValueError(
                "There must be as many sources as targets: `encoder_token_ids` and "
                f"`decoder_token_ids` have one row for each pair. Received: shapes {source} and "
                f"{target}"
            )
    if "mask_positions" in names:
        check_positions("mask_positions", inputs["mask_positions"], shapes["token_ids"])


def split_name(name):
    """Returns the side, empty in a model of one side, and the kind: `("encoder_", "token_ids")`."""
    side = next((side for side in ("encoder_", "decoder_") if name.startswith(side)), "")
    return side, name.removeprefix(side)


def check_positions(name, positions, shape):
    """Refuses positions that are not integers `(batch, count)` or lie outside a known row."""
    if in_symbolic_scope():
        return
    dtype = keras.backend.standardize_dtype(positions.dtype)
    if "int" not in dtype:
        raise TypeError(f"`{name}` must hold integers. Cast it to int32. Received: dtype {dtype}")
    received = tuple(positions.shape)
    if len(received) != 2 or not _same(received[:1], shape[:1]):
        raise ValueError(
            f"`{name}` must have the shape (batch, number of positions), with the batch of "
            f"`token_ids`. Received: {name} of shape {received}, token_ids of shape {shape}"
        )
    values = concrete(positions)
    if values is not None and shape[1] is not None:
        check_range(name, values, shape[1], "[0, length), here ")


def check_range(name, values, size, bounds=""):
    """Refuses integers outside of [0, size); `bounds` leads over to the numbers in the message."""
    if values.size and not 0 <= values.min() <= values.max() < size:
        raise ValueError(
            f"`{name}` must lie in {bounds}[0, {size}). Was the data made for another model? "
            f"Received: {values.min() if values.min() < 0 else values.max()}"
        )


def check_token_ids(inputs, size):
    """Refuses token ids outside of a vocabulary, on every side of a model."""
    for name, values in inputs.items():
        if split_name(name)[1] == "token_ids":
            check_range(name, keras.ops.convert_to_numpy(values), size)


def _same(shape, token_shape):
    return all(a is None or b is None or a == b for a, b in zip(shape, token_shape, strict=True))
