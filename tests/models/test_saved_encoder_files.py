"""A `SavedEncoder` goes to disk, comes back, is exported again, and meets other processes."""

import json
import os
import pathlib
import shutil
import sys
import zipfile

import h5py
import keras
import numpy as np
import pytest
from interpreters import python
from saved_encoders import (
    IDS,
    LENGTH,
    MASK,
    TYPES,
    VOCABULARY,
    classifier,
    fit,
    labels,
    rows,
    write_other_encoder,
)

import keras_tupe
from keras_tupe import SavedEncoder, positions
from keras_tupe.models._backbone_config import (
    FILE,
    new_backbone,
    read_backbone_config,
    write_backbone_config,
)

OUTSIDE = pathlib.Path(__file__).parents[2] / "examples" / "linear_slope.py"


@pytest.fixture
def trained(tensorflow, tmp_path):
    """A classifier on an encoder of others, trained a little; fast to make."""
    write_other_encoder(tmp_path / "other")
    model = classifier(SavedEncoder(tmp_path / "other", name="encoder"))
    fit(model, keras.optimizers.Adam(0.1), rows())
    return model


def of_backbone(backbone):
    names = {"token_ids": IDS, "padding_mask": MASK, "segment_ids": TYPES}
    inputs = rows()
    return backbone({name: inputs[key].astype("int32") for name, key in names.items()})


# Keras's files


def test_a_keras_file_brings_the_trained_weights_back(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    trained.save_weights(tmp_path / "model.weights.h5")
    expected = trained.predict(rows(), verbose=0)
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=False)
    np.testing.assert_array_equal(loaded.predict(rows(), verbose=0), expected)
    assert fit(loaded, "adam", rows(), epochs=1)[2] == []
    fresh = classifier(SavedEncoder(tmp_path / "other"))
    assert np.abs(fresh.predict(rows(), verbose=0) - expected).max() > 1e-2
    fresh.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(fresh.predict(rows(), verbose=0), expected)


def test_a_keras_file_holds_each_weight_once_and_the_path(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        config = json.loads(archive.read("config.json"))
        archive.extract("model.weights.h5", tmp_path)
    sizes = []
    with h5py.File(tmp_path / "model.weights.h5") as file:
        file.visititems(
            lambda name, item: sizes.append(item.size) if isinstance(item, h5py.Dataset) else None
        )
    variables = [*trained.variables, *trained.optimizer.variables]
    assert sorted(sizes) == sorted(int(np.prod(v.shape)) for v in variables)
    layers = {layer["class_name"]: layer for layer in config["config"]["layers"]}
    assert layers["SavedEncoder"]["registered_name"] == "keras_tupe>SavedEncoder"
    assert layers["SavedEncoder"]["config"]["path"] == str(tmp_path / "other")


def test_a_keras_file_whose_saved_model_is_gone_says_what_to_do(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    expected = trained.predict(rows(), verbose=0)
    (tmp_path / "other").rename(tmp_path / "moved")
    with pytest.raises(ValueError, match=r"is gone.*`load_weights`.*Received: path='.*other'"):
        keras.saving.load_model(tmp_path / "model.keras", safe_mode=False)
    again = classifier(SavedEncoder(tmp_path / "moved"))
    again.load_weights(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.predict(rows(), verbose=0), expected)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_keras_file_loads_no_saved_model_unless_the_user_says_so(trained, tmp_path, elsewhere):
    if elsewhere:
        trained.get_layer("encoder").saved_model_path = "gs://somewhere/model"
    trained.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match=r"runs whatever is in it.*safe_mode=False.*path='"):
        keras.saving.load_model(tmp_path / "model.keras")


def test_a_model_with_the_layer_can_be_exported_by_keras(trained, tensorflow, tmp_path):
    trained.export(tmp_path / "exported", verbose=False)
    loaded = tensorflow.saved_model.load(str(tmp_path / "exported"))
    inputs = {name: tensorflow.cast(value, "int32") for name, value in rows().items()}
    np.testing.assert_allclose(
        loaded.serve(inputs), trained.predict(rows(), verbose=0), rtol=1e-5, atol=1e-6
    )


# The way back to a backbone


def test_the_backbone_of_a_trained_layer_has_its_weights(saved):
    encoder = SavedEncoder(saved[1])
    fresh = encoder.to_backbone()
    for name, value in of_backbone(fresh).items():
        np.testing.assert_allclose(value, encoder(rows())[name], atol=1e-5)
    generator = np.random.default_rng(8)
    for weight in encoder.trainable_weights:  # as training would
        weight.assign_add(generator.normal(size=weight.shape) * 0.1)
    outputs = of_backbone(encoder.to_backbone())
    for name, value in outputs.items():
        np.testing.assert_allclose(value, encoder(rows())[name], atol=1e-5)
    assert np.abs(outputs["pooled_output"] - of_backbone(fresh)["pooled_output"]).max() > 1e-2
    assert encoder.to_backbone().get_config() == fresh.get_config()


@pytest.mark.slow
def test_a_trained_layer_is_exported_again(saved, tmp_path):
    from keras_tupe.export import export_encoder

    encoder = SavedEncoder(saved[1])
    fit(classifier(encoder), keras.optimizers.Adam(0.01), rows())
    export_encoder(encoder.to_backbone(), tmp_path / "again")
    again = SavedEncoder(tmp_path / "again")
    for name, value in encoder(rows()).items():
        np.testing.assert_allclose(again(rows())[name], value, atol=1e-6)


def test_the_backbone_of_an_encoder_of_others_is_not_known(trained):
    with pytest.raises(ValueError, match=r"is known\. Save the model.*`\.keras`.*Received: path="):
        trained.get_layer("encoder").to_backbone()


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "float64"])
@pytest.mark.parametrize("position", ["tupe_r", "absolute", "none", "shaw"])
def test_the_config_beside_a_saved_model_makes_the_same_backbone(tmp_path, position, dtype):
    model = keras_tupe.TupeBackbone(
        VOCABULARY, 1, 2, 6, 11, position, max_sequence_length=LENGTH, dtype=dtype, name="mine"
    )
    write_backbone_config(model, tmp_path)
    facts = read_backbone_config(tmp_path)
    assert facts["has_length_limit"] == model.has_length_limit
    again = new_backbone(facts)
    assert again.get_config() == model.get_config()
    assert [v.shape for v in again.variables] == [v.shape for v in model.variables]
    assert [f.name for f in tmp_path.rglob("*") if f.is_file()] == [FILE.name]


def test_a_positional_method_from_a_file_must_be_loaded_first(loaded_files, tmp_path):
    name = positions.load_file(shutil.copy(OUTSIDE, tmp_path))
    write_backbone_config(keras_tupe.TupeBackbone(VOCABULARY, 1, 2, 6, 11, name), tmp_path)
    facts = read_backbone_config(tmp_path)
    assert new_backbone(facts).position == "linear_slope"
    del positions.METHODS[name]
    with pytest.raises(ValueError, match=r"load_file\(path\).*Received: position='linear_slope'"):
        new_backbone(facts)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "is no JSON object"),
        ('{"format": 1, "has_length_limit": true, "config": {}}', "must hold"),
        ('{"format": 99}', r"a later keras_tupe \(format 99"),
    ],
)
def test_a_damaged_config_is_named(tmp_path, content, message):
    assert read_backbone_config(tmp_path) is None
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{message}.*Received: '.*{FILE.name}'"):
        read_backbone_config(tmp_path)


# Other processes

RELOAD = """
import os, sys
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras, numpy as np
import keras_tupe
model = keras.saving.load_model(sys.argv[1], safe_mode=False)
rows = dict(np.load(sys.argv[2]))
del rows["labels"]
np.savez(sys.argv[3], outputs=model.predict(rows, verbose=0))
"""

HUB = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
import tf_keras

folder, example, answers = sys.argv[1:]
rows = dict(np.load(example))
labels = rows.pop("labels")
rows = {name: tf.constant(value) for name, value in rows.items()}
results = {name: value.numpy() for name, value in hub.load(folder)(rows).items()}
tf_keras.utils.set_random_seed(3)

def train(trainable):
    inputs = {name: tf_keras.Input((None,), dtype=tf.int32, name=name) for name in rows}
    layer = hub.KerasLayer(folder, trainable=trainable)
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(2)(layer(inputs)["pooled_output"]))
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.Adam(0.02), loss)
    before = [weight.numpy() for weight in layer.weights]
    losses = [model.evaluate(rows, labels, verbose=0)]
    model.fit(rows, labels, batch_size=6, epochs=40, verbose=0)
    losses.append(model.evaluate(rows, labels, verbose=0))
    changed = [w.name for w, old in zip(layer.weights, before) if (w.numpy() != old).any()]
    return losses, len(layer.trainable_weights), changed

results["losses"], results["trainable"], results["changed"] = train(True)
_, results["frozen_trainable"], results["frozen_changed"] = train(False)
results["ours"] = [name for name in sys.modules if name.startswith("keras_tupe")]
np.savez(answers, **{name: np.array(value) for name, value in results.items()})
"""

MIRRORED = """
import os, sys
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras, numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from keras_tupe import SavedEncoder
from keras_tupe.trainer import Trainer

folder, example, answers, other = sys.argv[1:]
rows = dict(np.load(example))
labels = rows.pop("labels")
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
results = {}

def new_model(folder=folder):
    keras.utils.set_random_seed(3)
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in rows}
    encoder = SavedEncoder(folder, name="encoder")
    return keras.Model(inputs, keras.layers.Dense(2)(encoder(inputs)["pooled_output"]))

def loss():
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )

def copies(variable):
    return np.stack([v.numpy() for v in strategy.experimental_local_results(variable.value)])

for name, rate in (("adam", 0.02), ("adamw", 0.02), ("sgd", 0.3)):
    with strategy.scope():
        model = new_model()
        model.compile(name, loss(), jit_compile=False)
        model.optimizer.learning_rate.assign(rate)
    before = [w.numpy() for w in model.trainable_weights]
    losses = [model.evaluate(rows, labels, verbose=0)]
    model.fit(rows, labels, batch_size=6, epochs=40, verbose=0)
    results[f"{name}/losses"] = [*losses, model.evaluate(rows, labels, verbose=0)]
    pairs = zip(model.trainable_weights, before)
    results[f"{name}/same"] = [w.path for w, old in pairs if (w.numpy() == old).all()]
    results[f"{name}/apart"] = max(np.ptp(copies(w), 0).max() for w in model.trainable_weights)
model.save(answers + ".keras")
results["predicted"] = model.predict(rows, verbose=0)
with strategy.scope():
    loaded = keras.saving.load_model(answers + ".keras", safe_mode=False)
    results["loaded"] = loaded.predict(rows, verbose=0)
    trainer = Trainer(new_model(other), xla=True)  # which Keras alone cannot do under a strategy
    trainer.compile(keras.optimizers.Adam(0.02), loss())
data = tf.data.Dataset.from_tensor_slices((rows, labels, np.ones(6, "float32")))
data = data.batch(6, drop_remainder=True)
results["trainer/losses"] = trainer.fit(data, epochs=15, verbose=0).history["loss"]
np.savez(answers, **{name: np.array(value) for name, value in results.items()})
"""


def run(script, *arguments):
    path = os.pathsep.join(filter(None, sys.path))
    python("-c", script, *arguments, environment={"PYTHONPATH": path})


def answers_of(script, source, tmp_path, *more):
    inputs = {name: value.astype("int32") for name, value in rows().items()}
    np.savez(tmp_path / "rows.npz", labels=labels(), **inputs)
    run(script, source, tmp_path / "rows.npz", tmp_path / "answers", *more)
    with np.load(tmp_path / "answers.npz") as answers:
        return dict(answers)


@pytest.mark.slow
def test_a_keras_file_answers_alike_in_another_process(saved, tmp_path):
    model = classifier(SavedEncoder(saved[1]))
    fit(model, keras.optimizers.Adam(0.02), rows())
    model.save(tmp_path / "model.keras")
    answers = answers_of(RELOAD, tmp_path / "model.keras", tmp_path)
    expected = model.predict(rows(), verbose=0)
    np.testing.assert_allclose(answers["outputs"], expected, atol=1e-6)


@pytest.mark.slow
def test_tensorflow_hub_answers_and_trains_as_we_do(saved, tmp_path):
    pytest.importorskip(
        "tensorflow_hub", reason="pip install 'keras-tupe[test]'", exc_type=ImportError
    )
    answers = answers_of(HUB, saved[1], tmp_path)
    encoder = SavedEncoder(saved[1])
    for name, value in encoder(rows()).items():
        np.testing.assert_allclose(answers[name], value, atol=1e-6)
    assert answers["losses"][1] < 0.9 * answers["losses"][0]
    trainable = len(encoder.trainable_weights)
    assert answers["trainable"] == trainable
    assert sum("seed_generator" not in name for name in answers["changed"]) == trainable
    assert answers["frozen_trainable"] == 0
    assert answers["frozen_changed"].size == answers["ours"].size == 0


@pytest.mark.slow
def test_two_replicas_train_the_encoder_together(saved, tmp_path):
    write_other_encoder(tmp_path / "other", has_losses=False)  # `Trainer` refuses them
    answers = answers_of(MIRRORED, saved[1], tmp_path, tmp_path / "other")
    for name in ("adam", "adamw", "sgd"):
        losses = answers[f"{name}/losses"]
        assert losses[1] < 0.9 * losses[0]
        assert all(path.endswith("attention/key/bias") for path in answers[f"{name}/same"])
        assert answers[f"{name}/apart"] == 0
    np.testing.assert_allclose(answers["loaded"], answers["predicted"], atol=1e-6)
    assert answers["trainer/losses"][-1] < 0.9 * answers["trainer/losses"][0]
