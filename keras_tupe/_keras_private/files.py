"""Files that are being loaded, and those of presets."""

import h5py
import keras
import keras_hub


def in_safe_mode():
    """Returns the `safe_mode` that a file is loaded with, or `None` while none is loaded.

    A layer that runs what a file names must refuse to in safe mode, as Keras's `Lambda` does.

    Public name: none; `keras.saving.load_model` would do if it handed it to `from_config`.
    """
    return keras.src.saving.serialization_lib.in_safe_mode()


def preset_file(preset, name):
    """Returns the path of a preset's file, fetched if it must be, or raises `FileNotFoundError`.

    Files are checked before KerasHub makes what they name, and `from_preset` will fetch the same.

    Public name: none; `keras_hub.utils.get_file` would be one.
    """
    return keras_hub.src.utils.preset_utils.get_file(preset, name)


def files_of_store(store):
    """Returns the HDF5 files that the weights of a store are in, `[]` the second time.

    Public name: none; `keras.saving.load_weights` would be one if it told what it found.
    """
    if getattr(store, "h5_file", None) is None or vars(store).get("seen_by_keras_tupe"):
        return []
    store.seen_by_keras_tupe = True  # Keras gives it to every part of a model
    if not hasattr(store, "sharding_config"):
        return [store.h5_file]
    names = store.sharding_config["weight_map"].values()
    names = {name for x in names for name in (x if isinstance(x, list) else [x])}
    return [h5py.File(store.path.with_name(name), "r") for name in sorted(names)]
