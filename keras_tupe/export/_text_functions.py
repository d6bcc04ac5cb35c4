"""What every export of a model with its tokenizer does: checks, signatures of strings, files."""

import tensorflow as tf

from keras_tupe.export._checks import check_length, check_model, check_tokenizer
from keras_tupe.export._folders import new_export
from keras_tupe.export._packing import Packing


def checked_parts(model, tokenizer, length):
    """Returns a model's backbone, the packing of its texts, and the tokens of a row.

    Args:
        model: what `check_model` takes.
        tokenizer: what `Packing.of` takes.
        length: tokens of a row, or `None` for what the preprocessor or else the model says.

    Raises:
        TypeError, ValueError: as `check_model`, `Packing.of`, `check_tokenizer`, `check_length`.
    """
    backbone = check_model(model)
    packing = Packing.of(tokenizer)
    check_tokenizer(packing, backbone)
    return backbone, packing, check_length(backbone, packing.length if length is None else length)


def text_signature(function, *texts, **scalars):
    """Returns a `tf.function` of strings `(batch,)`, ready to be a signature.

    Args:
        function: what it does.
        *texts: names of the inputs that are strings. Defaults to `"text"`.
        **scalars: dtypes of further inputs without an axis, by name.
    """
    specs = [tf.TensorSpec([None], tf.string, name=name) for name in texts or ("text",)]
    specs += [tf.TensorSpec([], dtype, name=name) for name, dtype in scalars.items()]
    return tf.function(function, input_signature=specs, autograph=False)


def save_text_functions(functions, model, tokenizer, path):
    """Writes functions of strings as a SavedModel with the model's weights.

    Args:
        functions: dictionary of name -> what `text_signature` returned.
        model: whose weights they read.
        tokenizer: what `Packing.of` takes.
        path: folder to make. It may exist if it is empty.
    """
    root = tf.train.Checkpoint(tokenizer=Packing.of(tokenizer).tokenizer)
    root.variables = [variable.value for variable in model.variables]
    with new_export(path) as folder:
        tf.saved_model.save(root, str(folder), signatures=functions)


def assertion(condition, sentence):
    """Returns an op that fails with a sentence, unless XLA compiles the graph."""
    return tf.debugging.Assert(condition, [sentence])
