"""What commands and pages say of a trunk follows from its fields."""

import dataclasses
import re

import pytest

from docs.generate import trunk as table
from keras_tupe.trunk.config import SCALE, TrunkConfig
from training.command.settings import setting
from training.finetune.tasks.seq2seq import Settings as Pairs
from training.pretrain.identity import model_settings
from training.pretrain.settings import Settings
from training.pretrain.trunk import ASKED, FIELDS, with_trunk


def test_fields_are_options_of_a_run_and_of_its_identity():
    options = {field.name: field for field in dataclasses.fields(Settings)}
    identity = Settings().identity()
    for name in ASKED:
        assert options[name].metadata["help"]
        assert name in identity
        assert name in (*model_settings(Settings()), "dropout")
    assert {"num_heads", "num_segments", "kept_heads"}.isdisjoint(ASKED)
    assert options["dropout"].default == FIELDS["dropout"].default == 0.1
    assert (Pairs.normalize_embeddings, Pairs.scale_embeddings) == (True, False)


RULES = {
    field.name: field.metadata["rule"]
    for field in dataclasses.fields(Settings)
    if field.name in ASKED and field.metadata["rule"] is not None
}


@pytest.mark.parametrize("name", RULES)
def test_an_option_takes_what_the_trunk_takes(name):
    sizes = {"vocabulary_size": 9, "num_layers": 2, "num_heads": 1, "hidden_dim": 2}
    sizes |= {"intermediate_dim": 3, "position": "none", "attention_pattern": "causal"}
    words, holds = RULES[name]
    assert words
    for value in (0, 1, -1):
        value = FIELDS[name].type(value) if isinstance(FIELDS[name].type, type) else value
        try:
            TrunkConfig(**sizes, **{name: value})
        except ValueError:
            assert not holds(value)
        else:  # a run from weights without deviation would learn nothing
            assert holds(value) or FIELDS[name].metadata["rule"] is SCALE


def test_fields_stand_behind_that_of_the_class_and_its_own_words_hold():
    class Own:
        size: str = setting("base", "Size.")
        dropout: float = setting(0.5, "Mine.")
        steps: int = setting(1, "Steps.")

    made = with_trunk(("normalize_first", "dropout", "segment_length"), after="size")(Own)
    fields = {field.name: field for field in dataclasses.fields(made)}
    assert list(fields) == ["size", "normalize_first", "dropout", "segment_length", "steps"]
    assert (made().dropout, fields["dropout"].metadata["help"]) == (0.5, "Mine.")
    assert "Default: --memory-length," in fields["segment_length"].metadata["help"]


def test_the_page_has_a_row_for_each_field():
    rows = re.findall(r"^\| `(\w+)` ", table.fields(), re.MULTILINE)
    assert rows == list(FIELDS)
    assert "<!-- generated" not in table.pages()[table.PAGE]
