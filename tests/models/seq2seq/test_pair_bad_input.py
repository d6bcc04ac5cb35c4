"""What a model of pairs cannot take is told in a sentence."""

import dataclasses

import keras
import numpy as np
import pytest
from pair_models import ROW, WORDS, backbone, pair_lm, some_pairs, text_lm, texts
from position_cases import VOCABULARY

from keras_tupe import (
    TupeBackbone,
    TupeCausalLM,
    TupeCausalLMPreprocessor,
    TupeMaskedLM,
    TupeTokenizer,
    positions,
)
from keras_tupe.models import SmoothedCrossentropy, TupeSeq2SeqBackbone, TupeSeq2SeqLM

SIDES = ("encoder", "decoder")
LONG = "1 2 3 4 5 6 7 8 9"


@pytest.fixture(scope="module")
def model():
    return pair_lm(num_decoder_layers=1)


@pytest.fixture(scope="module")
def text_model():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("texts need TensorFlow")
    return text_lm(num_decoder_layers=1)


def beginnings(**changes):
    """Returns inputs to be completed: targets of five tokens that begin with two."""
    given = some_pairs((6, 3), (5, 5))
    given["decoder_padding_mask"][:, 2:] = 0
    return {**given, **changes}


# What models are made of


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"num_decoder_layers": 0}, "`num_decoder_layers` must be a positive integer"),
        ({"num_heads": 3}, "`hidden_dim` must be divisible by `num_heads`"),
        ({"position": "tupe_x"}, "Did you mean 'tupe_r'"),
        ({"activation": "relu"}, "`activation` must be one of"),
        (  # T5's decoder has all buckets on one side
            {"position": "t5", "position_options": {"max_distance": 11}},
            "`max_distance` must be an integer above 16",
        ),
    ],
)
def test_impossible_backbones_are_refused(kwargs, sentence):
    sizes = dict(zip(("num_layers", "num_heads", "hidden_dim"), (1, 2, 8), strict=True))
    with pytest.raises(ValueError, match=sentence) as error:
        TupeSeq2SeqBackbone(9, **{**sizes, "intermediate_dim": 8, **kwargs})
    assert "Received: " in str(error.value)


def test_a_method_that_no_decoder_can_have_is_refused(monkeypatch):
    record = positions.get("rope")
    refused = dataclasses.replace(record, refused_patterns={"causal": "it looks ahead"})
    monkeypatch.setitem(positions.METHODS, "rope", refused)
    with pytest.raises(ValueError, match="'rope' is not defined for .* 'causal': it looks ahead"):
        TupeSeq2SeqBackbone(9, 1, 2, 8, 8, position="rope")


def test_other_backbones_and_preprocessors_are_refused(model, tensorflow):
    with pytest.raises(TypeError, match="needs a `TupeSeq2SeqBackbone`. Received: TupeBackbone"):
        TupeSeq2SeqLM(TupeBackbone(9, 1, 1, 4, 4))
    other = TupeCausalLMPreprocessor(TupeTokenizer(WORDS), ROW)
    with pytest.raises(TypeError, match="needs a `TupeSeq2SeqLMPreprocessor`.*TupeCausalLMPrep"):
        TupeSeq2SeqLM(model.backbone, other)


@pytest.mark.parametrize("side", [0, 1])
def test_rows_end_where_tables_end(side, tensorflow):
    lengths = [ROW, ROW]
    lengths[side] += 1
    name = f"{SIDES[side]}_sequence_length"
    with pytest.raises(ValueError, match=f"max_sequence_length={ROW}.*Make it with `{name}={ROW}`"):
        text_lm(*lengths)
    text_lm(*lengths, case="rope")  # which has none


def test_a_larger_vocabulary_is_refused_but_for_the_mask(text_model, tensorflow):
    preprocessor = text_model.preprocessor
    with pytest.raises(ValueError, match="must not be larger.*15 token vectors.*16 pieces"):
        TupeSeq2SeqLM(backbone(vocabulary_size=15), preprocessor)


@pytest.mark.parametrize("share", [1, -0.1, float("nan"), "a"])
def test_a_label_smoothing_that_is_no_share_is_refused(share):
    with pytest.raises(ValueError, match="`label_smoothing` must be a number in"):
        SmoothedCrossentropy(share)


# Presets


def test_presets_of_other_models_are_refused(text_model, tmp_path, tensorflow):
    masked = TupeMaskedLM(TupeBackbone(9, 1, 1, 4, 4))
    causal = TupeCausalLM(TupeBackbone(9, 1, 1, 4, 4, attention_pattern="causal"))
    for each in (masked, causal, text_model):
        each.save_to_preset(str(tmp_path / type(each).__name__))
    for loader, name, held in (
        (TupeSeq2SeqLM, "TupeMaskedLM", "TupeBackbone"),
        (TupeSeq2SeqLM, "TupeCausalLM", "TupeBackbone"),
        (TupeSeq2SeqBackbone, "TupeMaskedLM", "TupeBackbone"),
        (TupeMaskedLM, "TupeSeq2SeqLM", "TupeSeq2SeqBackbone"),
        (TupeBackbone, "TupeSeq2SeqLM", "TupeSeq2SeqBackbone"),
    ):
        sentence = f"`{loader.__name__}` needs a preset of its own kind.* holds a `{held}`"
        with pytest.raises(ValueError, match=sentence) as error:
            loader.from_preset(str(tmp_path / name))
        assert "\n" not in str(error.value)


# Texts


@pytest.mark.parametrize(
    ("inputs", "max_length", "sentence"),
    [
        (["1 2", ""], None, "A source must have at least one token"),
        ([], None, "There must be at least one source"),
        (LONG, None, "A source must have at most 8 tokens.*Received: '1 2 3"),
        ({"encoder_text": "1"}, None, "dictionary of `encoder_text`.*Received: .'encoder_text'."),
        ({"source": "1", "target": "2"}, None, "dictionary of `encoder_text`"),
        (texts(["1", "2"], ["1"]), None, "one size.*batches of 2 and 1 texts"),
        (texts(["1"], [LONG]), None, "begins with must leave room for a token in its row of 8"),
        (texts(["1"], ["1 2 3 4 5 6 7"]), None, "must leave room for a token in its row of 8"),
        (texts(["1"], ["1 2"]), 3, "must leave room for a token in its row of 3"),
        ("1", 1, "must leave room for a token in its row of 1"),
        ("1", 9, "end at max_sequence_length=8 tokens.*max_length=9"),
        ("1", 0, "`max_length` must be a positive integer"),
    ],
)
def test_texts_that_do_not_fit_are_refused(inputs, max_length, sentence, text_model, tensorflow):
    with pytest.raises(ValueError, match=sentence) as error:
        text_model.generate(inputs, max_length=max_length)
    assert "\n" not in str(error.value)
    assert "Received: " in str(error.value)


def test_what_is_no_text_and_what_cannot_be_stripped_is_refused(text_model, tensorflow):
    with pytest.raises(TypeError, match="Texts must be strings"):
        text_model.generate([3])
    with pytest.raises(ValueError, match="Leave `strip_prompt` out"):
        text_model.generate("1", strip_prompt=True)


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ("1", "Pairs must come as a dictionary.*Received: str"),
        (texts([""], ["1"]), "A source must have at least one token"),
        (texts([LONG], ["1"]), "A source must have at most 8 tokens"),
        (texts(["1"], ["1 2 3 4 5 6 7 8"]), "A target must have at most 8 tokens, the start"),
        (texts(["1", "2"], ["1"]), "one size"),
    ],
)
def test_pairs_that_do_not_fit_are_not_scored(inputs, sentence, text_model, tensorflow):
    with pytest.raises(ValueError, match=sentence):
        text_model.score(inputs)
    found = text_model.score(texts(["1"], ["1 2 3 4 5 6 7"]))  # as long as may be
    assert found["padding_mask"].tolist() == [[1] * ROW]


# Ids


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("wrong", [VOCABULARY, -1])
def test_ids_outside_the_vocabulary_are_refused(side, wrong, model):
    given, name = beginnings(), f"{side}_token_ids"
    ids = given[name].copy()
    ids[1, 0] = wrong
    bad, labels = {**given, name: ids}, np.zeros((2, 5), "int32")
    for call in (
        lambda: model.fit(bad, labels, verbose=0),
        lambda: model.evaluate(bad, labels, verbose=0),
        lambda: model.train_on_batch(bad, labels),
        lambda: model.predict(bad, verbose=0),
        lambda: model.score(bad),
        lambda: model.generate(bad, stop_token_ids=None),
    ):
        sentence = rf"^`{name}` must lie in \[0, {VOCABULARY}\).*Received: {wrong}$"
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(ValueError, match=f"Token ids must lie in .*Received: token id={wrong}"):
        model(bad)
    with pytest.raises(ValueError, match=rf"`labels` must lie in \[0, {VOCABULARY}\)"):
        model.fit(given, labels + VOCABULARY, verbose=0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"encoder_padding_mask": None}, "dictionary with the inputs .'decoder_padding_mask'"),
        ({"decoder_token_ids": np.ones((1, 5), int)}, "must have the same"),
        ({"decoder_padding_mask": np.ones((2, 4), int)}, "must have the same"),
        ({"decoder_padding_mask": np.array([[1, 0, 1, 0, 0]] * 2)}, "must stand on the left"),
        ({"decoder_padding_mask": np.ones((2, 5), int)}, "leave room for a token"),
        ({"decoder_padding_mask": np.zeros((2, 5), int)}, "at least one token"),
        (
            {"encoder_padding_mask": np.array([[1] * 6, [0] * 6])},
            "A source must have at least one token. Received: no token in row 1",
        ),
        (
            {f"encoder_{kind}": np.ones((2, 18), int) for kind in ("token_ids", "padding_mask")},
            "max_sequence_length=17 tokens of a source.*a length of 18",
        ),
        (
            {f"decoder_{kind}": np.eye(2, 18, dtype=int) for kind in ("token_ids", "padding_mask")},
            "max_sequence_length=17 tokens.*max_length=18",
        ),
        (
            {f"encoder_{kind}": np.ones((3, 6), int) for kind in ("token_ids", "padding_mask")},
            r"as many sources as targets.*\(3, 6\) and \(2, 5\)",
        ),
    ],
)
def test_ids_that_do_not_fit_are_refused(changes, sentence, model):
    given = beginnings(**changes)
    given = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ValueError, match=sentence) as error:
        model.generate(given, stop_token_ids=None)
    assert "\n" not in str(error.value)


def test_ids_that_are_no_integers_are_refused(model):
    given = beginnings()
    given["encoder_token_ids"] = given["encoder_token_ids"].astype("float32")
    for call in (model, model.score, lambda x: model.generate(x, stop_token_ids=None)):
        with pytest.raises(TypeError, match="`encoder_token_ids` must hold integers"):
            call(given)


def test_labels_of_a_smoothed_loss_are_checked_too():
    model = pair_lm(num_decoder_layers=1)
    model.compile(loss=SmoothedCrossentropy(0.1))
    with pytest.raises(ValueError, match=r"`labels` must lie in \[0, 23\)"):
        model.fit(beginnings(), np.full((2, 5), VOCABULARY), verbose=0)
