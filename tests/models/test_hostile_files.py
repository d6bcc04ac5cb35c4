"""What a preset or a `.keras` file from elsewhere cannot do, at every door."""

import io
import os
import pathlib
import shutil
import zipfile

import h5py
import keras
import numpy as np
import pytest

import keras_tupe

pytest.importorskip("tensorflow_text", reason="presets with a tokenizer need tensorflow_text")

import tensorflow as tf
from hostile_files import (
    TASKS,
    VOCABULARY,
    Folder,
    changed_keras_file,
    doors,
    keras_file,
    load_keras_file,
    saved_encoder,
    task,
    writing_saved_model,
)

slow = pytest.mark.slow
KINDS = ["masked_lm", *(pytest.param(kind, marks=slow) for kind in TASKS if kind != "masked_lm")]
DOORS = ["ours", "keras_hub", "training"]
TOKENS = "layers/token_embedding/vars/0"


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets")
    for kind in TASKS:
        made = task(kind)
        made.save_to_preset(str(folder / kind))
        keras_file(made, folder / f"{kind}.keras")
    return folder


@pytest.fixture(scope="module")
def model():
    """A task into which weights may be loaded."""
    return task()


@pytest.fixture
def preset(presets, tmp_path):
    def copy(kind="masked_lm"):
        return Folder(shutil.copytree(presets / kind, tmp_path / kind))

    return copy


@pytest.fixture
def keras_path(presets, tmp_path):
    def copy(kind="masked_lm"):
        return pathlib.Path(shutil.copy(presets / f"{kind}.keras", tmp_path))

    return copy


@pytest.fixture(scope="module")
def trap(tmp_path_factory):
    """A SavedModel that writes a file when it is loaded, and that file."""
    folder = tmp_path_factory.mktemp("trap")
    return writing_saved_model(folder / "saved", folder / "written"), folder / "written"


# Keras goes on after the first thing that it could not load, and warns of the next.
pytestmark = pytest.mark.filterwarnings("ignore:Skipping nested container:UserWarning")


def refused(load, match, *args):
    with pytest.raises(ValueError, match=match) as found:
        load(*args)
    assert "Received" in str(found.value)
    return str(found.value)


# SavedModels


def test_the_trap_works(trap):
    path, written = trap
    tf.saved_model.load(str(path))
    assert written.exists()
    written.unlink()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["backbone", "preprocessor", "the whole"])
def test_a_preset_that_names_a_saved_model_runs_nothing(preset, trap, door, kind, part):
    path, written = trap
    folder = preset(kind)
    shutil.copytree(path, folder.path / "saved")
    hostile = saved_encoder(folder.path / "saved")

    def change(content):
        if part == "the whole":
            return hostile
        content["config"][part] = hostile

    folder.change("task.json", change)
    if door == "keras_hub" and part == "the whole" and kind != "spans":
        # KerasHub makes a new task where task.json is of another class
        keywords = {"num_classes": 2} if kind == "classifier" else {}
        doors(kind)[door](folder.path, **keywords)
    else:
        refused(doors(kind)[door], "must be a", folder.path)
    assert not written.exists()


@pytest.mark.parametrize("name", ["preprocessor.json", "tokenizer.json", "config.json"])
def test_no_small_file_of_a_preset_may_name_a_saved_model(preset, trap, name):
    path, written = trap
    folder = preset()
    folder.change(name, lambda content: saved_encoder(path))
    loads = doors("masked_lm")
    loads.pop("keras_hub")(folder.path)  # which makes task.json, and nothing of the others
    for load in (*loads.values(), keras_tupe.TupeTokenizer.from_preset):
        with pytest.raises(ValueError, match="must be a"):
            load(folder.path)
    assert not written.exists()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", ["backbone", "preprocessor", "the whole"])
def test_a_keras_file_that_names_a_saved_model_runs_nothing(keras_path, trap, kind, part):
    path, written = trap

    def change(config):
        if part == "the whole":
            return saved_encoder(path)
        config["config"][part] = saved_encoder(path)

    refused(
        load_keras_file, "must be a|safe_mode=False", changed_keras_file(keras_path(kind), change)
    )
    assert not written.exists()


def test_a_functional_model_with_a_saved_encoder_needs_the_users_word(trap, tmp_path):
    path, written = trap
    config = {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": "sequential", "layers": [saved_encoder(path)]},
        "registered_name": None,
    }
    with pytest.raises(ValueError, match="safe_mode=False"):
        keras.saving.deserialize_keras_object(config)
    assert not written.exists()


# Other classes


def foreign(class_name, module="keras.layers", registered_name=None, **config):
    return {
        "module": module,
        "class_name": class_name,
        "config": config,
        "registered_name": registered_name,
    }


FOREIGN = {
    "Lambda": foreign(
        "Lambda", function={"class_name": "__lambda__", "config": {"value": "abc"}}, name="x"
    ),
    "TFSMLayer": foreign("TFSMLayer", filepath="/tmp", call_endpoint="serve"),
    "foreign module": foreign("Popen", module="subprocess", args=["true"]),
    "Keras layer": foreign("Dense", units=3),
    "list as a class": foreign(["TupeBackbone"], module="keras_tupe"),
    "list as a name": foreign("TupeBackbone", registered_name=["keras_tupe>TupeBackbone"]),
    "unknown class": foreign("Nothing", registered_name="nowhere>Nothing"),
}


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("part", ["backbone", "preprocessor"])
def test_classes_that_do_not_belong_are_refused_before_anything_is_made(preset, what, part):
    folder = preset()
    folder.change("task.json", lambda content: content["config"].update({part: FOREIGN[what]}))
    for load in doors("masked_lm").values():
        message = refused(load, "must be a ", folder.path)
        assert "could run code" in message


@pytest.mark.parametrize("name", ["dropout", "position_options", "position", "dtype", "name"])
def test_an_object_inside_a_plain_setting_is_refused(preset, keras_path, name):
    def change(content):
        content["config"]["backbone"]["config"][name] = FOREIGN["Lambda"]

    folder = preset()
    folder.change("task.json", change)
    folder.change("config.json", lambda content: content["config"].update({name: {"a": [{}]}}))
    for load in (*doors("masked_lm").values(), keras_tupe.TupeBackbone.from_preset):
        with pytest.raises((ValueError, TypeError), match="Received"):
            load(folder.path if load != keras_tupe.TupeBackbone.from_preset else str(folder.path))
    with pytest.raises(ValueError, match="must be a plain value"):
        load_keras_file(changed_keras_file(keras_path(), change))


def test_an_activation_may_be_a_name_or_a_registered_function(preset, keras_path):
    for activation in (FOREIGN["Lambda"], foreign("function", module="os")):
        folder = preset("classifier")
        folder.change(
            "task.json",
            lambda content, value=activation: content["config"].update({"activation": value}),
        )
        for load in doors("classifier").values():
            refused(load, "must be a plain value", folder.path)
        shutil.rmtree(folder.path)
    folder = preset("classifier")
    folder.change("task.json", lambda content: content["config"].update({"activation": "tanh"}))
    assert doors("classifier")["ours"](folder.path).activation == "tanh"


def test_what_a_preset_does_not_say_of_an_object_is_refused(preset):
    folder = preset()
    hostile = {"optimizer": foreign("Adam", module="keras.optimizers")}
    folder.change("task.json", lambda content: content.update({"compile_config": hostile}))
    refused(keras_tupe.TupeMaskedLM.from_preset, "must have nothing but", folder.path)


def test_a_tokenizer_of_no_kind_is_refused(preset):
    folder = preset()

    def change(content):
        content["config"]["preprocessor"]["config"]["tokenizer"]["config"]["kind"] = None

    folder.change("task.json", change)
    folder.change("tokenizer.json", lambda content: content["config"].update(kind=None))
    for load in (doors("masked_lm")["ours"], keras_tupe.TupeTokenizer.from_preset):
        refused(load, "does not know which vocabulary to load", folder.path)


def test_a_tokenizer_cannot_be_made_to_write_outside_of_a_preset(preset, tmp_path):
    folder = preset()
    for name in ("tokenizer.json", "preprocessor.json", "task.json"):

        def change(content, name=name):
            found = content["config"]
            for part in ("preprocessor", "tokenizer"):
                found = found.get(part, {}).get("config", found) if part in found else found
            found["config_file"] = "../../outside.json"

        folder.change(name, change)
    for load in doors("masked_lm").values():
        refused(load, "must be the name of a JSON file", folder.path)


# Links


@pytest.mark.parametrize(
    "name", ["config.json", "task.json", "tokenizer.json", "model.weights.h5", VOCABULARY]
)
def test_links_that_leave_the_folder_are_refused_and_not_quoted(preset, tmp_path, name):
    folder = preset()
    secret = tmp_path / "secret"
    secret.write_text("[PAD]\nthe secret\nthe secret\n")
    (folder.path / name).unlink()
    (folder.path / name).symlink_to(secret)
    loads = doors("masked_lm")
    if name == "tokenizer.json":
        loads.pop("keras_hub")(folder.path)  # which reads task.json alone
    for load in loads.values():
        with pytest.raises(ValueError) as found:  # noqa: PT011 (KerasHub's words are its own)
            load(folder.path)
        assert "the secret" not in str(found.value)
    refused(keras_tupe.TupeMaskedLM.from_preset, "a link to elsewhere", folder.path)


def test_a_linked_folder_of_assets_is_refused(preset, tmp_path):
    folder = preset()
    shutil.move(folder.path / "assets", tmp_path / "elsewhere")
    (folder.path / "assets").symlink_to(tmp_path / "elsewhere")
    for load in doors("masked_lm").values():
        refused(load, "a link to elsewhere", folder.path)


def test_a_pipe_in_a_preset_is_refused_and_not_waited_for(preset):
    folder = preset()
    (folder.path / "config.json").unlink()
    os.mkfifo(folder.path / "config.json")
    refused(keras_tupe.TupeBackbone.from_preset, "plain files", folder.path)


def test_links_within_a_folder_and_those_of_a_hub_cache_are_followed(preset, tmp_path):
    folder = preset()
    shutil.move(folder.path / "config.json", folder.path / "real.json")
    (folder.path / "config.json").symlink_to("real.json")
    assert doors("masked_lm")["ours"](folder.path).backbone.num_layers == 1
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1f2e"
    blobs = tmp_path / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(folder.path.rglob("*"))):
        place = snapshot / path.relative_to(folder.path)
        if path.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, blobs / str(number))
            place.symlink_to(os.path.relpath(blobs / str(number), place.parent))
    assert doors("masked_lm")["ours"](snapshot).backbone.num_layers == 1


# Weights


def external_link(weights, path, name=TOKENS):
    del weights[name]
    weights[name] = h5py.ExternalLink(str(path), "/x")


def soft_link(weights, path, name=TOKENS):
    del weights[name]
    weights[name] = h5py.SoftLink("/layers/dense/vars/0")


def external_storage(weights, path, name=TOKENS):
    shape = weights[name].shape
    del weights[name]
    weights.create_dataset(name, shape, "float32", external=[(str(path), 0, 2400)])


def virtual(weights, path, name=TOKENS):
    shape = weights[name].shape
    del weights[name]
    layout = h5py.VirtualLayout(shape, "float32")
    layout[...] = h5py.VirtualSource(str(path), "x", shape)
    weights.create_virtual_dataset(name, layout)


def claim(weights, path, name=TOKENS):
    del weights[name]
    weights.create_dataset(name, (2**40, 4), "float32", chunks=(2**20, 4), compression="gzip")


def cycle(weights, path, name=TOKENS):
    weights["layers/again"] = weights["layers"]


def texts(weights, path, name=TOKENS):
    weights["layers/text"] = "a text"


WEIGHTS = {
    external_link: "a link to elsewhere",
    soft_link: "a link to elsewhere",
    external_storage: "lies in other files",
    virtual: "lies in other files",
    claim: "a trap",
    cycle: "a tree of groups",
    texts: "arrays of numbers",
}


@pytest.mark.parametrize("change", WEIGHTS, ids=lambda change: change.__name__)
def test_weights_that_are_not_in_the_file_are_refused(preset, keras_path, tmp_path, model, change):
    (tmp_path / "secret").write_bytes(bytes(2400))
    folder = preset()
    with folder.weights() as weights:
        change(weights, tmp_path / "secret")
    loads = doors("masked_lm")
    refused(loads["ours"], WEIGHTS[change], folder.path)
    if change is external_link:
        refused(loads["keras_hub"], WEIGHTS[change], folder.path)
        refused(loads["training"], WEIGHTS[change], folder.path)
    path = keras_path()
    with zipfile.ZipFile(path) as archive:
        buffer = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(buffer, "a") as weights:
        change(weights, tmp_path / "secret", f"layers/tupe_backbone/{TOKENS}")
    path = changed_keras_file(path, model=buffer.getvalue())
    refused(load_keras_file, WEIGHTS[change], path)
    refused(model.load_weights, WEIGHTS[change], path)
    refused(model.backbone.load_weights, WEIGHTS[change], folder.path / "model.weights.h5")


@pytest.mark.parametrize(
    ("name", "value"),
    [("model.weights.h5", np.inf), pytest.param("task.weights.h5", np.nan, marks=slow)],
)
def test_weights_that_are_not_numbers_are_refused_and_keras_reads_them(preset, name, value):
    folder = preset("classifier")
    with folder.weights(name) as weights:
        weights["layers/dense/vars/1"][0] = value
    message = refused(keras_tupe.TupeTextClassifier.from_preset, "NaN or infinite", folder.path)
    assert "1 of" in message
    assert "layers/dense/vars/1" in message
    model = keras_tupe.TupeTextClassifier.from_preset(folder.path, load_weights=False)
    part = model.backbone if name == "model.weights.h5" else model
    keras.Model.load_weights(part, folder.path / name)  # as the message says
    assert any(not np.isfinite(weight).all() for weight in model.get_weights())


def test_a_keras_file_with_nan_is_refused(presets, tmp_path):
    model = load_keras_file(presets / "masked_lm.keras")
    weight = model.backbone.token_embedding.weights[0]
    weight.assign(np.full(weight.shape, np.nan))
    path = keras_file(model, tmp_path / "nan.keras")
    refused(load_keras_file, r"NaN or infinite", path)
    refused(task().load_weights, r"NaN or infinite", path)
    keras.Model.load_weights(task(), path)  # as the message says


def test_half_precision_weights_are_looked_at_too(tmp_path):
    backbone = keras_tupe.TupeBackbone(9, 1, 2, 4, 4, dtype="bfloat16")
    path = tmp_path / "half.weights.h5"
    backbone.save_weights(path)
    backbone.load_weights(path)
    weight = backbone.token_embedding.weights[0]
    weight.assign(keras.ops.full(weight.shape, float("nan"), dtype="bfloat16"))
    backbone.save_weights(path)
    refused(backbone.load_weights, "NaN or infinite", path)


@pytest.mark.parametrize(
    "sizes",
    [
        {"vocabulary_size": 2**40},
        {"intermediate_dim": 2**40},
        {"num_layers": 2**40},
        {"num_segments": 2**40},
        {"max_sequence_length": 2**40},
        {"hidden_dim": 2**40},
        {"vocabulary_size": 10**4000, "hidden_dim": 10**4000},
        {"position": "diet_abs", "position_options": {"rank": 2**40}},
        {"position": "free_table", "position_options": {}, "max_sequence_length": 2**40},
    ],
    ids=str,
)
def test_sizes_that_cannot_be_are_refused_before_memory_is_taken(preset, keras_path, sizes):
    def change(content):
        content["config"]["backbone"]["config"].update(sizes)

    folder = preset()
    folder.change("task.json", change)
    folder.change("config.json", lambda content: content["config"].update(sizes))
    with pytest.raises(ValueError, match="must be of one encoder"):
        keras_tupe.TupeMaskedLM.from_preset(folder.path)
    for load in doors("masked_lm").values():
        refused(load, "must be of one encoder|more than this machine", folder.path)
    path = changed_keras_file(keras_path(), change)
    refused(load_keras_file, "more than this machine", path)


@pytest.mark.parametrize("name", ["config.json", "task.json", "preprocessor.json"])
@pytest.mark.parametrize(
    "content", ["[]", "3", "null", "{", '{"config": []}', "[" * 10_000, "\0", '"a"']
)
def test_small_files_that_are_no_objects(preset, name, content):
    folder = preset()
    (folder.path / name).write_text(content)
    refused(keras_tupe.TupeMaskedLM.from_preset, "must be", folder.path)


@pytest.mark.parametrize(
    "listed", [["../../secret.h5"], "/etc/passwd", 3, {"a": "b"}, ".", "", None], ids=str
)
def test_a_list_of_shards_may_name_files_beside_it_only(preset, listed):
    folder = preset()
    (folder.path / "model.weights.h5").unlink()
    (folder.path / "model.weights.json").write_text("{}")
    folder.change("model.weights.json", lambda content: {"weight_map": {"/a/vars/0": listed}})
    refused(keras_tupe.TupeMaskedLM.from_preset, "must name files beside it", folder.path)


def test_presets_in_several_files_still_load(tmp_path, preset):
    model = task()
    model.save_to_preset(str(tmp_path / "sharded"), max_shard_size=1e-5)
    assert len(list((tmp_path / "sharded").glob("model_*.h5"))) > 1
    again = keras_tupe.TupeMaskedLM.from_preset(tmp_path / "sharded")
    for old, new in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(old, new)


# What must still work


@pytest.mark.parametrize("kind", KINDS)
def test_honest_files_pass_every_door(preset, keras_path, kind):
    folder = preset(kind)
    expected = keras_tupe.TupeBackbone.from_preset(folder.path).get_weights()
    for load in doors(kind).values():
        model = load(folder.path)
        model = model[0] if isinstance(model, tuple) else model
        for old, new in zip(expected, model.backbone.get_weights(), strict=True):
            np.testing.assert_array_equal(old, new)
    load_keras_file(keras_path(kind))
    assert keras_tupe.TupeTokenizer.from_preset(folder.path).vocabulary_size() == 150


@keras.saving.register_keras_serializable(package="a test's own")
class OwnBackbone(keras_tupe.TupeBackbone):
    """A class of a user's own, which the user has imported."""


def test_a_registered_subclass_is_welcome(tmp_path):
    model = keras_tupe.TupeMaskedLM(OwnBackbone(9, 1, 2, 4, 4))
    model.save(tmp_path / "model.keras")
    assert isinstance(load_keras_file(tmp_path / "model.keras").backbone, OwnBackbone)
    model.save_to_preset(str(tmp_path / "preset"))
    assert isinstance(OwnBackbone.from_preset(tmp_path / "preset"), OwnBackbone)
