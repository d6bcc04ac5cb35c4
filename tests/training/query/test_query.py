"""`training.query`: questions that fit, and strings answered by a preset."""

import shutil

import commands
import pytest
from generation_cases import text_model
from training.query.questions import STYLES, fitting

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeMaskedLMPreprocessor, TupeTokenizer
from keras_tupe.export import export_encoder, export_text_model
from keras_tupe.export.portable import random_inputs
from keras_tupe.export.served import input_names
from keras_tupe.tokenizers import WordPiece
from training.export.check import write_example
from training.query.settings import Settings

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = sorted("abcdefghijklmnopqrstuvwxyz.,")


def words_of(style):
    """Returns the words of the sentences of a style, in lower case."""
    texts = next(each for each in STYLES if each.style == style).sentences
    return sorted({word.strip(".,").lower() for text in texts for word in text.split()})


def pieces_of(style):
    """Returns a vocabulary that has the words of one style, and of others the letters alone."""
    letters = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    return [*SPECIAL, *letters, *sorted(set(words_of(style)) - set(letters))]


@pytest.mark.parametrize("style", [each.style for each in STYLES])
def test_the_questions_are_those_that_the_vocabulary_writes_in_the_fewest_pieces(style):
    tokenizer = WordPiece(pieces_of(style))
    found, shares = fitting(lambda texts: [len(ids) for ids in tokenizer.tokenize(texts).to_list()])
    assert found.style == style
    assert shares[style] < 1.3  # the mark at the end is a piece
    assert all(share > 1.5 for name, share in shares.items() if name != style)


def test_the_questions_of_a_style_are_of_one_form():
    for each in STYLES:
        assert all(text.count("[MASK]") == 1 for text in each.fill)
        assert not set(each.nearest) & set(each.sentences)
        assert len(set(each.sentences)) == 8


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """An export with text/, the same with preset/ alone, and one with neither."""
    pieces = pieces_of("encyclopedia")
    text = TupeMaskedLMPreprocessor(TupeTokenizer(pieces), sequence_length=64)
    backbone = TupeBackbone(len(pieces), 1, 2, 8, 16, max_sequence_length=64)
    model = TupeMaskedLM(backbone, preprocessor=text)
    above = tmp_path_factory.mktemp("exports")
    export_encoder(model, above / "neither", 64)
    inputs = random_inputs(model, 4, 64)
    inputs = {name: inputs[hub] for name, hub in input_names(model).items()}
    write_example(above / "neither", model, inputs)
    for name in ("text", "preset"):
        shutil.copytree(above / "neither", above / name)
    export_text_model(model, text, above / "text" / "text", 64)
    model.save_to_preset(str(above / "preset" / "preset"))
    return above


@pytest.mark.slow
def test_a_preset_answers_as_text_does_and_it_is_said(exports):
    words = ("--fill", "the town is [MASK].", "--nearest", "a river.")
    told = [commands.done("query", exports / name, *words) for name in ("text", "preset")]
    said = "no text/ in this export: preset/ answers, loaded by keras_tupe"
    assert [said in each for each in told] == [False, True]
    assert told[1].replace(f"{said}\n", "") == told[0]
    assert "in the manner of" not in told[0]


@pytest.mark.slow
def test_own_questions_are_said_to_be_in_a_manner(exports):
    told = commands.done("query", exports / "preset")
    assert "questions in the manner of: encyclopedia (pieces per word: documentation " in told
    assert "The river flows into the [MASK].\n    " in told


@pytest.mark.slow
def test_without_both_the_example_alone_is_compared(exports):
    told = commands.done("query", exports / "neither")
    assert "largest relative difference" in told
    assert "in the manner of" not in told
    told = commands.refusal("query", exports / "neither", "--fill", "a [MASK]", code=2)
    assert "need an export with text/ or preset/" in told
    assert Settings(str(exports / "neither")).strings is None


@pytest.mark.slow
def test_a_causal_language_model_goes_on_with_prompts(tmp_path):
    model = text_model()
    model.save_to_preset(str(tmp_path / "preset"))
    commands.done("export", tmp_path / "preset", "--out", tmp_path / "export", "--with-preset")
    model.compile(sampler="greedy")
    text = model.generate("the cat")
    told = commands.done("query", tmp_path / "export", "--prompt", "the cat")
    assert f"the cat\n    {text}\n" in told
    assert "He was\n    he was" in commands.done("query", tmp_path / "export")
    told = commands.refusal("query", tmp_path / "export", "--prompt", "the cat " * 24)
    assert "must be shorter than `max_length`" in told
    shutil.rmtree(tmp_path / "export" / "text")
    assert f"    {text}\n" in commands.done("query", tmp_path / "export", "--prompt", "the cat")
    told = commands.refusal("query", tmp_path / "export", "--fill", "a [MASK]")
    assert "need the export of a masked language model" in told
