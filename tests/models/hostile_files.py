"""A small preset and `.keras` file, ways to change them, and the doors by which they are loaded."""

import json
import pathlib
import shutil
import zipfile

import h5py
import keras_hub
import tensorflow as tf
from tiny_vocabularies import wordpiece_pieces

import keras_tupe

TASKS = {
    "masked_lm": keras_tupe.TupeMaskedLM,
    "classifier": keras_tupe.TupeTextClassifier,
}
VOCABULARY = "assets/tokenizer/vocabulary.txt"


def task(kind="masked_lm"):
    """Returns a task of a few hundred weights, with its preprocessor."""
    pieces, made = wordpiece_pieces(), TASKS[kind]
    backbone = keras_tupe.TupeBackbone(len(pieces), 1, 2, 4, 4)
    preprocessor = made.preprocessor_cls(keras_tupe.TupeTokenizer(pieces), sequence_length=8)
    return made(backbone, preprocessor=preprocessor, **made.example_options)


class Folder:
    """A preset that can be changed."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def change(self, name, change):
        """Changes the JSON of a file by a function of its content."""
        content = json.loads((self.path / name).read_text())
        result = change(content)
        content = content if result is None else result
        (self.path / name).write_text(json.dumps(content))

    def weights(self, name="model.weights.h5"):
        """Opens a weights file to change it."""
        return h5py.File(self.path / name, "a")


def writing_saved_model(folder, target):
    """Writes a SavedModel whose initializer writes the file `target` as soon as it is loaded."""

    class Resource(tf.saved_model.experimental.TrackableResource):
        def _create_resource(self):
            return tf.constant(0)

        def _initialize(self):
            tf.io.write_file(str(target), "written by a model that was only loaded")

    class Trap(tf.Module):
        def __init__(self):
            super().__init__()
            self.resource = Resource()

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            return x + tf.cast(self.resource.resource_handle, tf.float32)

    tf.saved_model.save(Trap(), str(folder))
    target.unlink(missing_ok=True)  # saving runs it too
    return folder


def saved_encoder(path):
    """Returns what stands in a file for a `SavedEncoder` of a SavedModel."""
    return {
        "module": "keras_tupe.models.saved_encoder",
        "class_name": "SavedEncoder",
        "config": {"name": "encoder", "trainable": True, "path": str(path), "mlm": False},
        "registered_name": "keras_tupe>SavedEncoder",
    }


def doors(kind):
    """Returns the ways to load a preset of a task: dictionary from name to function."""
    ours = TASKS[kind]
    base = keras_hub.models.MaskedLM if kind == "masked_lm" else keras_hub.models.TextClassifier

    def by_training(folder):
        from training.presets.load import load_preset

        return load_preset(folder)

    return {
        "ours": lambda folder: ours.from_preset(str(folder)),
        "keras_hub": lambda folder, **keywords: base.from_preset(str(folder), **keywords),
        "training": by_training,
    }


def changed_keras_file(path, change=None, **members):
    """Changes the configuration in a `.keras` file, or replaces members by bytes."""
    before = path.with_suffix(".before.keras")
    shutil.move(path, before)
    with zipfile.ZipFile(before) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = members.get(name.split(".")[0], old.read(name))
            if name == "config.json" and change is not None:
                config = json.loads(content)
                content = json.dumps(change(config) or config)
            new.writestr(name, content)
    return path
