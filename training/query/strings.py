"""What answers strings: the export's `text/`, or else the preset in it."""

import pathlib
import types

import tensorflow as tf


def load(folder, source):
    """Returns an object with `signatures`, as of `text/`: name -> function of `text=` strings.

    Args:
        folder: the export.
        source: `"text"`, or `"preset"`, which needs `keras_tupe` and says so.

    Raises:
        ValueError, OSError: if it cannot be loaded.
    """
    place = pathlib.Path(folder) / source
    if source == "text":
        import tensorflow_text  # noqa: F401  registers the tokenizer's op

        return tf.saved_model.load(str(place))
    print(f"no text/ in this export: {source}/ answers, loaded by keras_tupe", flush=True)
    from keras_tupe.export.text_model import text_functions
    from training.presets.load import load_preset

    return types.SimpleNamespace(signatures=text_functions(*load_preset(place)))
