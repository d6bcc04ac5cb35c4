import string

import hypothesis
import pytest
from hypothesis import strategies

from keras_tupe import positions
from training.command.variant import Variant, parse


@pytest.mark.parametrize("name", sorted(positions.METHODS))
def test_a_name_alone_is_the_method_and_its_folder(name):
    variant = parse(name)
    assert variant == Variant(name)
    assert variant.text == variant.label == variant.folder == name


@pytest.mark.parametrize(
    ("text", "options", "folder"),
    [
        ("bert_r:max_distance=16", {"max_distance": 16}, "bert_r.max_distance=16"),
        ("tupe_r:cls=tied", {"cls": "tied"}, "tupe_r.cls=tied"),
        ("shaw:share_heads=true:k=4", {"share_heads": True, "k": 4}, "shaw.k=4.share_heads=true"),
        ("shaw:k=null", {"k": None}, "shaw.k=null"),
        ('tupe_r:cls="16"', {"cls": "16"}, "tupe_r.cls=_16_-"),
    ],
)
def test_options_are_json_or_text_and_make_another_folder(text, options, folder):
    variant = parse(text)
    assert variant.options == options
    assert variant.folder.startswith(folder)
    assert parse(variant.text) == variant
    assert variant.resolved() == positions.get(variant.position).resolve(options)


_VALUES = strategies.one_of(
    strategies.none(),
    strategies.booleans(),
    strategies.integers(),
    strategies.floats(allow_nan=False, allow_infinity=False),
    strategies.text(alphabet=string.printable.replace(":", ""), max_size=8),
)


@hypothesis.given(value=_VALUES, other=_VALUES)
def test_what_is_written_is_read_again_and_folders_are_safe_and_differ(value, other):
    variant, second = Variant("tupe_r", {"cls": value}), Variant("tupe_r", {"cls": other})
    assert parse(variant.text).options == {"cls": value}
    allowed = set(string.ascii_letters + string.digits + "_.,=+-")
    assert set(variant.folder) <= allowed
    assert (variant.folder == second.folder) == (variant.text == second.text)


def test_a_file_defines_a_method_of_its_own(loaded_files, tmp_path):
    (tmp_path / "mine.py").write_text("from keras_tupe.positions.bert_r import METHOD\n")
    variant = parse(f"{tmp_path}/mine.py:max_distance=16")
    assert (variant.position, variant.file) == ("mine", f"{tmp_path}/mine.py")
    assert variant.label == "mine:max_distance=16"
    assert variant.folder == "mine.max_distance=16"
    assert parse(variant.text) == variant


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "absolut",
            ["no positional method 'absolut'", "nearest is 'absolute'", "keras-tupe list methods"],
        ),
        ("", ["no positional method ''"]),
        ("bert_r:max_dist=3", ["no option 'max_dist'", "nearest is 'max_distance'"]),
        ("none:k=3", ["none has no option 'k'; it has none"]),
        ("bert_r:max_distance", ["NAME:option=value", "'max_distance' in"]),
        ("bert_r:max_distance=", ["NAME:option=value"]),
        ("shaw:k=3:k=4", ["written once", "'k=4'"]),
        ("nowhere.py", ["existing Python file"]),
    ],
)
def test_mistakes_are_answered_with_a_sentence(text, parts):
    with pytest.raises(ValueError, match="Received: ") as error:
        parse(text)
    for part in parts:
        assert part in str(error.value)
