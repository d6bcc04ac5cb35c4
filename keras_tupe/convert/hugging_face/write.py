"""Steps of writing a folder as Hugging Face does: checks, arrays, files."""

import contextlib
import json
import os

import keras
import numpy as np

from keras_tupe._new_folder import check_is_new, new_folder
from keras_tupe.convert.hugging_face.weights import SAFETENSORS


def backbone_and_tokenizer(model, kinds, folder):
    """Returns the backbone of a model and its tokenizer, or `None`.

    Raises:
        TypeError: if the model is none of `kinds`, classes.
        ValueError: if `folder` exists.
    """
    check_is_new(folder)
    if not isinstance(model, kinds):
        names = " or a ".join(f"`{kind.__name__}`" for kind in kinds)
        raise TypeError(
            f"`model` must be a {names}. Give the backbone of another task. "
            f"Received: a {type(model).__name__}"
        )
    tokenizer = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    return getattr(model, "backbone", model), tokenizer


def refuse(name, problems):
    """Raises `ValueError` if there are reasons why Hugging Face's model `name` cannot hold ours."""
    if problems:
        raise ValueError(
            f"Hugging Face's {name} has no counterpart of this model. "
            f"Received: {'; '.join(problems)}"
        )


def sharing(backbone):
    """Returns what of a backbone is shared, factorised or pruned, which only some models know.

    Args:
        backbone: a `TupeBackbone`.

    Returns:
        List of problems, for `refuse`.
    """
    return [
        f"{name}={getattr(backbone, name)} must be None"
        for name in ("embedding_dim", "num_groups", "kept_heads")
        if getattr(backbone, name, None) is not None
    ]


def other_head(model, expected):
    """Returns whether a masked-LM head has another activation than it has there.

    Args:
        model: a task or a backbone.
        expected: the activation there, as here.

    Returns:
        List of problems, for `refuse`.
    """
    found = getattr(model, "head_activation", expected)
    return [] if found == expected else [f"head_activation={found!r} must be {expected!r}"]


def their_arrays(weights, layout, num_heads):
    """Returns weights under their names, contiguous: safetensors writes the memory as it is.

    Args:
        weights: dictionary: path -> variable.
        layout: dictionary: path -> `Place`.
        num_heads: number of attention heads.
    """
    found = {}
    for path, weight in weights.items():
        array = layout[path].form.theirs(keras.ops.convert_to_numpy(weight), num_heads)
        found[layout[path].name] = np.ascontiguousarray(array)
    return found


@contextlib.contextmanager
def new_hf_folder(folder, weights):
    """Makes a folder with weights; in the `with` block its path, to write more files into.

    Args:
        folder: path; it appears when all is written.
        weights: dictionary: name -> contiguous array.

    Raises:
        OSError: if the files cannot be written.
    """
    import safetensors
    import safetensors.numpy

    with new_folder(folder) as partial:
        yield partial
        # transformers refuses files that do not name their framework
        try:
            safetensors.numpy.save_file(weights, partial / SAFETENSORS, metadata={"format": "pt"})
        except safetensors.SafetensorError as error:
            raise OSError(
                "The weights cannot be written. Make room, or choose another folder. "
                f"Received: {os.fspath(folder)!r}; {error}"
            ) from error


def write_json(path, content):
    """Writes a dictionary as a JSON file."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
