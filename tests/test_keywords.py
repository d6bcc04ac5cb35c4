"""Every keyword that a public class or function does not know is refused, with what was meant."""

import importlib
import inspect
import json
import pkgutil
import zipfile

import keras
import pytest

import keras_tupe
from keras_tupe import positions
from keras_tupe._keywords import did_you_mean, known_keywords
from keras_tupe.layers import RelativeBucketBias
from keras_tupe.models import TupeBackbone, TupeMaskedLM
from keras_tupe.models.presets import PresetClass

NEED_TENSORFLOW = ("export", "tokenizers")


def public_objects():
    """Returns what the packages offer, and the layers of methods, by dotted name."""
    found = {}
    for module in pkgutil.iter_modules(keras_tupe.__path__):
        if module.name.startswith("_"):
            continue
        if module.name in NEED_TENSORFLOW and keras.backend.backend() != "tensorflow":
            continue
        package = importlib.import_module(f"keras_tupe.{module.name}")
        for name in getattr(package, "__all__", ()):
            found[f"{module.name}.{name}"] = getattr(package, name)
    return found


PUBLIC = public_objects()
CLASSES = {name: item for name, item in PUBLIC.items() if inspect.isclass(item)}
FUNCTIONS = {name: item for name, item in PUBLIC.items() if inspect.isroutine(item)}
# Whatever they are given is written down, under its name.
TAKE_ANY = {"export.write_card"}
# What is converted decides which keywords there are; the nearest name is tested with them.
TAKE_ANY |= {"convert.from_hf", "convert.load"}
# They hand keywords on to a class, which refuses what it does not know.
TAKE_ANY |= {
    f"positions.{name}"
    for name in ("additive_method", "attention", "attention_method", "distance_method")
}
# Other classes are Keras layers and plain ones, which refuse what they do not know themselves.
OF_PRESETS = {name for name, item in CLASSES.items() if issubclass(item, PresetClass)}


@pytest.mark.parametrize("name", sorted(OF_PRESETS))
def test_every_class_of_presets_refuses_an_unknown_keyword_with_the_nearest_name(name):
    owner = CLASSES[name]
    known = sorted(known_keywords(owner))
    for right in known:
        wrong = right + right[-1]
        with pytest.raises(ValueError, match=f"has no argument {wrong!r}") as caught:
            owner(**{wrong: "a value", "zzz": 3})
        message = str(caught.value)
        assert message.startswith(f"`{owner.__name__}` has no argument {wrong!r}. Did you mean ")
        assert did_you_mean(wrong, known) == f" Did you mean {right!r}?"
        assert "has no argument 'zzz'. Expected a subset of [" in message
        assert message.endswith(f"Received: {wrong}='a value', zzz=3")


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_what_a_class_is_given_can_still_be_read_from_its_constructor(name):
    owner = CLASSES[name]
    own = inspect.signature(owner.__init__).parameters.values()
    names = {p.name for p in own if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    assert names - {"self"} <= known_keywords(owner)
    assert owner.__init__.__name__ == "__init__"


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - TAKE_ANY))
def test_no_function_takes_any_keyword(name):
    with pytest.raises(TypeError, match="unexpected keyword argument 'zzz'"):
        FUNCTIONS[name](zzz=3)


def test_what_keras_models_would_ignore_is_refused():
    backbone = TupeBackbone(50, 1, 2, 8, 8)
    for name, value in {"dtype": "float16", "inputs": 3, "activity_regularizer": "l2"}.items():
        with pytest.raises(ValueError, match=f"`TupeMaskedLM` has no argument {name!r}"):
            TupeMaskedLM(backbone, **{name: value})
    assert TupeMaskedLM(backbone, name="masked", trainable=False, compile=False).name == "masked"


@pytest.mark.parametrize("option", ["kk", "share_head"])
def test_options_of_methods_name_the_nearest_option(option):
    nearest = {"kk": "k", "share_head": "share_heads"}[option]
    with pytest.raises(ValueError, match=f"no option {option!r}. Did you mean {nearest!r}?"):
        TupeBackbone(50, 1, 2, 8, 8, position="shaw", position_options={option: 3})
    with pytest.raises(ValueError, match=f"no option {option!r}. Did you mean {nearest!r}?"):
        positions.get("shaw").with_options("a summary", "a source", **{option: 3})


# Files


def test_a_preset_with_an_unknown_key_is_refused(tmp_path):
    TupeBackbone(50, 1, 2, 8, 8).save_to_preset(tmp_path)
    file = tmp_path / "config.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["config"]["postion"] = "tupe_a"
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match="`TupeBackbone` has no argument 'postion'"):
        TupeBackbone.from_preset(str(tmp_path))


@pytest.mark.parametrize("within", ["config", "layer"])
def test_a_keras_file_with_an_unknown_key_is_refused(tmp_path, within):
    told = "has no argument 'postion'" if within == "config" else "postion"
    layer = RelativeBucketBias(2, name="layer")
    inputs = keras.Input((5, 8))
    model = keras.Model(inputs, layer(inputs))
    if within == "config":
        model = TupeBackbone(50, 1, 2, 8, 8)
    model.save(tmp_path / "model.keras")
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(files["config.json"])
    part = config if within == "config" else config["config"]["layers"][1]
    part["config"]["postion"] = "tupe_a"
    files["config.json"] = json.dumps(config)
    with zipfile.ZipFile(tmp_path / "changed.keras", "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    with pytest.raises((ValueError, TypeError), match=told):
        keras.saving.load_model(tmp_path / "changed.keras")
