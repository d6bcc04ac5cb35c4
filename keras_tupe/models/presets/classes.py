"""Bases of the classes of a preset, beside KerasHub's own, which check files before using them."""

import importlib
import os

from keras_tupe import attention_patterns, positions
from keras_tupe._keywords import did_you_mean, known_keywords
from keras_tupe.models.presets.check import BASES, check_preset, clear_errors
from keras_tupe.models.presets.config_check import check_config
from keras_tupe.models.presets.files import drop_mixed_policies, name_tasks
from keras_tupe.models.presets.weights_file import check_values, check_weights


class PresetClass:
    """First parent of every class that a preset may hold.

    Attributes:
        preset_file: in a class that defines it, the file of a preset that describes its objects.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "preset_file" in vars(cls):
            BASES[cls.preset_file] = (*BASES.get(cls.preset_file, ()), cls)

    @classmethod
    def _config_parts(cls):
        """Returns which arguments of the class are objects: dictionary from name to class."""
        return {}

    @classmethod
    def from_config(cls, config):
        known = known_keywords(cls)
        for name in set(config) - known:
            raise ValueError(
                f"`{cls.__name__}` has no argument {name!r}.{did_you_mean(name, known)} A file "
                "that names it is of a newer version of keras_tupe: install that one, the file "
                f"stays as it is. Received: {name}={config[name]!r:.100}"
            )
        check_config(cls, config)
        return super().from_config(dict(config))

    @classmethod
    def from_preset(cls, preset, *args, **kwargs):
        preset = os.fspath(preset) if isinstance(preset, os.PathLike) else preset
        check_preset(preset)
        with clear_errors(preset):
            return super().from_preset(preset, *args, **kwargs)


class PresetModel(PresetClass):
    """First parent of the encoder and of every task."""

    def save_to_preset(self, preset_dir, *args, **kwargs):
        super().save_to_preset(preset_dir, *args, **kwargs)
        drop_mixed_policies(preset_dir)
        backbone = getattr(self, "backbone", self)
        name_tasks(preset_dir, type(backbone))
        for registry in (positions.REGISTRY, attention_patterns.REGISTRY):
            name = getattr(backbone, registry.argument)
            registry.carried.carry(preset_dir, name, registry.source_of(name))

    def export(self, filepath, format="tf_saved_model", verbose=None, **kwargs):
        """Writes the model for other programs, as `keras.Model.export` does.

        `"onnx"` and `"litert"` are `keras_tupe.export.export_onnx` and `export_litert`: in
        float32, of any batch and length, compared with Keras before the file has its name, and
        with what the task serves, such as probabilities. Other formats are Keras's own.

        Args:
            filepath: file or folder to make.
            format: `"tf_saved_model"`, `"onnx"`, `"litert"`, or another one that Keras knows.
            verbose: whether Keras tells what it wrote.
            **kwargs: of Keras's own formats.
        """
        if format not in ("onnx", "litert"):
            return super().export(filepath, format=format, verbose=verbose, **kwargs)
        doors = importlib.import_module("keras_tupe.export")  # of TensorFlow, above models
        return getattr(doors, f"export_{format}")(self, filepath, **kwargs)

    def load_weights(self, filepath, *args, **kwargs):
        if os.path.isfile(filepath):
            check_weights(filepath)
        return super().load_weights(filepath, *args, **kwargs)

    def load_task_weights(self, filepath):
        if os.path.isfile(filepath):
            check_weights(filepath)
        super().load_task_weights(filepath)

    def load_own_variables(self, store):
        # the one method of ours that Keras calls with the weights of a `.keras` file
        if getattr(store, "h5_file", None) and not getattr(store, "checked_by_keras_tupe", False):
            check_values(store.h5_file, store.h5_file.filename)
            store.checked_by_keras_tupe = True
        super().load_own_variables(store)
