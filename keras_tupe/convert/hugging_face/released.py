"""Weights as a folder of Hugging Face holds them: their names, and what of them is left out."""

import pathlib

import numpy as np

from keras_tupe.models.presets import check_inside


def checked_folder(folder):
    """Returns the path of a folder; raises `ValueError` if a file in it is a link to elsewhere."""
    folder = pathlib.Path(folder)
    for path in sorted(folder.glob("*.*")):
        if path.is_symlink() or path.is_file():
            check_inside(folder, path)
    return folder


def plain_names(released, prefix):
    """Returns the weights under one spelling, and how the file spells each name.

    Args:
        released: dictionary: name in the file -> array.
        prefix: name of the encoder in a model with a head, which one without has not.

    Returns:
        `(names, found)`: dictionaries from plain names to names in the file, and to arrays.

    Raises:
        ValueError: if a weight is there under two names.
    """
    names, found = {}, {}
    for name, value in released.items():
        plain = name.removeprefix(prefix)
        # before 2019 normalizations were named as in TensorFlow
        for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
            if plain.endswith(f"LayerNorm{old}"):
                plain = plain.removesuffix(old) + new
        if plain in names:
            raise ValueError(
                f"A checkpoint must hold every weight once. Received: {names[plain]!r} and {name!r}"
            )
        names[plain], found[plain] = name, value
    return names, found


def name_bias(names, found, bias, other):
    """Gives the bias of a masked-LM head its one name, in place, if the file has the other.

    Args:
        names, found: what `plain_names` returned.
        bias: the one name.
        other: the other, that of the decoder.
    """
    if bias not in found and other in found:
        for each in (names, found):
            each[bias] = each.pop(other)


def left_out(found, tied, reasons):
    """Returns the names for which our model has nothing, with the reason.

    Args:
        found: dictionary: plain name -> array.
        tied: dictionary: plain name -> name of the weight that it must be equal to.
        reasons: dictionary: plain name, or with a point at its end the beginning of names -> why.

    Raises:
        ValueError: if a weight that ours ties to another is not equal to it.
    """
    dropped = {}
    for name, twin in tied.items():
        if name in found and twin in found:
            if not np.array_equal(found[name], found[twin]):
                raise ValueError(
                    "The output matrix and bias of the head must be the token embedding and the "
                    "bias themselves, as in the released models; untied ones have no place here. "
                    f"Received: {name!r}, which differs from {twin!r}"
                )
            dropped[name] = f"the same as {twin}"
    for name in found:
        for start, reason in reasons.items():
            if name == start or (start.endswith(".") and name.startswith(start)):
                dropped[name] = reason
    return dropped


def rounding(found, backbone):
    """Returns a note if the weights have another type in the file than in the model."""
    kinds = {str(value.dtype) for value in found.values() if value.dtype.kind not in "biu"}
    ours = backbone.dtype_policy.variable_dtype
    other = sorted(kinds - {ours})
    return (f"the weights are {', '.join(other)} in the file and {ours} here",) if other else ()
