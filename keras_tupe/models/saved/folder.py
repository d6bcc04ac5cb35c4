"""A SavedModel is loaded, or a sentence says why not."""

import os


def path_as_text(path):
    """Returns a path as a string.

    Raises:
        TypeError: if it is neither a string nor a path.
    """
    if isinstance(path, str | os.PathLike) and isinstance(os.fspath(path), str):
        return os.fspath(path)
    raise TypeError(
        "`path` must be the folder of a SavedModel, as a string or `pathlib.Path`. Received: "
        f"path={path!r}"
    )


def load_folder(path):
    """Returns what `tf.saved_model.load` makes of a folder.

    Args:
        path: folder as a string; of a file system that TensorFlow knows, such as `gs://...`.

    Raises:
        ValueError: if there is no such folder, it holds no SavedModel, or one that TensorFlow
            cannot load.
    """
    import tensorflow as tf

    try:
        exists = tf.io.gfile.isdir(path)
        is_saved_model = tf.saved_model.contains_saved_model(path)
    except tf.errors.OpError as error:
        raise ValueError(
            "TensorFlow cannot read from there. Copy the SavedModel to a local folder first; for a "
            "handle of TF Hub `tensorflow_hub.resolve(handle)` does that. Received: "
            f"path={path!r}"
        ) from error
    if not exists:
        raise ValueError(
            "There is no such folder. `path` must be the folder of a SavedModel, as "
            f"`keras_tupe.export.export_encoder` writes it. Received: path={path!r}"
        )
    if not is_saved_model:
        raise ValueError(
            "The folder holds no SavedModel: there is no saved_model.pb in it. A preset is loaded "
            "with `keras_tupe.TupeBackbone.from_preset`; `keras_tupe.export.export_encoder` "
            f"writes SavedModels. Received: path={path!r} with {sorted(tf.io.gfile.listdir(path))}"
        )
    try:
        return tf.saved_model.load(path)
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200]
        if "Op type not registered" in reason:
            reason = (
                "it needs an operation that TensorFlow does not have, as models that take text "
                "do, and an encoder takes ids"
            )
        raise ValueError(
            f"The SavedModel could not be loaded: {reason}. Received: path={path!r}"
        ) from error
