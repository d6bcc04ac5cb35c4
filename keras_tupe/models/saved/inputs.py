"""Checks of the inputs of a `SavedEncoder` before TensorFlow sees them."""

import keras

from keras_tupe.models.saved.signature import IDS, MASK, POSITIONS, TYPES


def check_saved_inputs(inputs, signature, fractions=False):
    """Checks the inputs of a loaded encoder at the door.

    Args:
        inputs: dictionary of tensors or `KerasTensor`s.
        signature: the `SavedSignature`. The sizes of others' encoders are not known.
        fractions: whether ids that are no integers are let through.

    Raises:
        ValueError: if an input is missing or unknown, shapes are not `(batch, length)` or do not
            fit each other, the length is none that the encoder takes, or, in eager calls, an id
            is outside its table.
        TypeError: if the inputs are not integers in dense tensors.
    """
    known = {*signature.inputs, TYPES}
    needed = known - {TYPES}
    if not isinstance(inputs, dict) or not needed <= set(inputs) <= known:
        received = list(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        raise ValueError(
            f"The encoder takes a dictionary with the keys {sorted(needed)}; {TYPES!r} may be left "
            f"out, which means one segment. Received: {received}"
        )
    for name, value in inputs.items():
        _check_dtype(name, value, fractions)
    _check_shapes({name: tuple(value.shape) for name, value in inputs.items()})
    _check_length(inputs[IDS].shape[1], signature)
    if signature.facts:
        config = signature.facts["config"]
        _check_ids(inputs, IDS, config["vocabulary_size"])
        _check_ids(inputs, TYPES, config["num_segments"])  # 0: ignored
        _check_ids(inputs, POSITIONS, inputs[IDS].shape[1])


def _check_dtype(name, value, fractions):
    if not hasattr(value, "dtype") or hasattr(value, "row_splits"):
        raise TypeError(
            f"`{name}` must be a tensor or array of shape (batch, length). Pad rows of different "
            f"lengths. Received: {type(value).__name__}"
        )
    dtype = keras.backend.standardize_dtype(value.dtype)
    if "int" in dtype or (name == MASK and dtype == "bool") or (fractions and "float" in dtype):
        return
    expected = "integers or booleans" if name == MASK else "integers"
    raise TypeError(
        f"`{name}` must hold {expected}, in a `keras.Input` too. Cast it to int32; a tokenizer "
        f"makes ids from text. Received: {name} of dtype {dtype}"
    )


def _check_shapes(shapes):
    first = shapes[IDS]
    for name, shape in shapes.items():
        wanted = (*first[:1], None) if name == POSITIONS else first
        pairs = zip(shape, wanted, strict=False)
        if not (len(shape) == len(first) == 2) or not all(_same(*pair) for pair in pairs):
            second = "predictions" if name == POSITIONS else "length"
            raise ValueError(
                f"`{name}` must have the shape (batch, {second}), with the batch (and length) of "
                f"`{IDS}`. Received: {name} of shape {shape}, {IDS} of shape {first}"
            )


def _same(size, wanted):
    return size is None or wanted is None or size == wanted


def _check_length(length, signature):
    if length is None:
        return
    if length == 0:
        raise ValueError(
            "A row must have at least one token, [CLS], which is pooled. Received: length=0"
        )
    if None not in signature.lengths and length not in signature.lengths:
        raise ValueError(
            f"The encoder was exported for rows of {sorted(signature.lengths)} tokens. Pad or "
            f"truncate the input. Received: length={length}"
        )
    facts = signature.facts
    longest = facts["config"]["max_sequence_length"] if facts else None
    if facts and facts["has_length_limit"] and length > longest:
        raise ValueError(
            f"The encoder has positions for at most max_sequence_length={longest} tokens. Truncate "
            "the input, or make the tables longer with `keras_tupe.extend_positions` before "
            f"exporting. Received: length={length}"
        )


def _check_ids(inputs, name, size):
    if name not in inputs or not size or not hasattr(inputs[name], "numpy"):  # a graph is traced
        return
    ids = inputs[name].numpy()
    wrong = ids[(ids < 0) | (ids >= size)]
    if wrong.size:
        raise ValueError(
            f"`{name}` must lie in [0, {size}). Was the text encoded for another model? Received: "
            f"{name}={wrong.flat[0]}"
        )
