"""`training.query`: questions of every task, to presets and exports."""

import shutil

import commands
import pytest
from generation_cases import text_model
from tiny_vocabularies import wordpiece_pieces

import keras_tupe
from keras_tupe.export import export_encoder, export_text_model
from keras_tupe.tasks import TASKS
from training.query.settings import Settings

slow = pytest.mark.slow


def made(task):
    """Returns a task with a preprocessor for rows of 24 tokens."""
    pieces = wordpiece_pieces()
    backbone = keras_tupe.TupeBackbone(len(pieces), 1, 2, 8, 16, max_sequence_length=24)
    kind = TASKS[task]
    text = kind.preprocessor_cls(keras_tupe.TupeTokenizer(pieces), sequence_length=24)
    return kind(backbone, preprocessor=text, **getattr(kind, "example_options", {}))


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets")
    for task in ("masked_lm", "text_classifier", "span_extractor"):
        made(task).save_to_preset(str(folder / task))
    return folder


def test_a_preset_of_each_task_answers_texts(presets):
    told = commands.done("query", presets / "text_classifier", "--text", "the dog")
    assert "classify:\nthe dog\n    class " in told
    words = ("--text", "who?", "--text-pair", "the dog and the fox. " * 9)
    told = commands.done("query", presets / "span_extractor", *words)
    assert told.count("who? | the dog") == 1
    assert "%" in told
    told = commands.done("query", presets / "masked_lm", "--text", "the [MASK] dog")
    assert "the [MASK] dog\n    " in told
    told = commands.done("query", presets / "masked_lm", "--ask", "embed", "--text", "the dog")
    assert told.count("\n    ") == 3, "the nearest sentences, by the vectors of its encoder"


@slow
def test_own_questions_are_asked_where_none_is_given(presets):
    for task in ("masked_lm", "text_classifier", "span_extractor"):
        assert f"{TASKS[task].signature}:" in commands.done("query", presets / task)


@slow
def test_an_export_answers_as_the_preset_in_it(tmp_path):
    model = made("masked_lm")
    export_encoder(model, tmp_path / "export", 24)
    export_text_model(model, model.preprocessor, tmp_path / "export" / "text", 24)
    model.save_to_preset(str(tmp_path / "preset"))
    commands.done("export", tmp_path / "preset", "--out", tmp_path / "whole", "--with-preset")
    words = ("--text", "the [MASK] dog")
    by_text = commands.done("query", tmp_path / "whole", *words)
    assert "largest relative difference" in by_text
    shutil.rmtree(tmp_path / "whole" / "text")
    by_preset = commands.done("query", tmp_path / "whole", *words)
    answer = "the [MASK] dog\n    "
    assert by_text.partition(answer)[2].splitlines()[0] in by_preset


@slow
def test_a_causal_language_model_goes_on_with_texts(tmp_path):
    model = text_model()
    model.save_to_preset(str(tmp_path / "preset"))
    commands.done("export", tmp_path / "preset", "--out", tmp_path / "export", "--with-preset")
    model.compile(sampler="greedy")
    text = model.generate("the cat")
    told = commands.done("query", tmp_path / "export", "--text", "the cat")
    assert f"the cat\n    {text}\n" in told


def test_mistakes_are_one_sentence(presets, tmp_path):
    told = commands.refusal("query", tmp_path / "none", code=2)
    assert "the folder must be an export of keras_tupe" in told
    told = commands.refusal("query", presets / "masked_lm", "--ask", "classify", "--text", "a")
    assert "The model answers no such question. Expected one of" in told
    given = Settings(str(presets / "masked_lm"), text=("a", "b"), text_pair=("c",))
    assert any("as often as --text" in problem for problem in given.problems())
