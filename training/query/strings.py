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
    from keras_tupe import TupeCausalLM
    from keras_tupe.export.text import text_functions
    from keras_tupe.export.writing import generator_functions
    from training.presets.load import load_preset

    model, text = load_preset(place)  # the export of a model of pairs has text/ always
    functions = generator_functions if isinstance(model, TupeCausalLM) else text_functions
    return types.SimpleNamespace(signatures=functions(model, text))
