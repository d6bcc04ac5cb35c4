"""The benchmarks of preparation and of the way back to text, on a small text."""

import json

import pytest

from benchmarks import prepare as prepare_benchmark
from benchmarks import round_trip
from keras_tupe.tokenizers import WordPiece
from training.prepare import __main__ as prepare

SENTENCES = [f"The {number} Caf\u00e9s open at {number * number}." for number in range(101)]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(SENTENCES), encoding="utf-8")
    return path


def test_sentences_that_do_not_come_back_are_counted(text, tmp_path):
    rows = tmp_path / "rows"
    options = ["--vocabulary-size", "200", "--length", "24"]
    prepare.main(["--input", str(text), "--out", str(rows), *options])
    tokenizer = WordPiece(rows / "vocabulary.txt")
    ids, sizes = round_trip.tokenize(tokenizer, SENTENCES)
    wrong = [SENTENCES[0], "another sentence", *SENTENCES[2:]]
    found = round_trip.compare(tokenizer, "wordpiece", wrong, ids, sizes)
    assert found["sentences_that_do_not_come_back"] == 1


@pytest.mark.slow
def test_time_and_memory_of_preparation_are_measured(text, tmp_path):
    out = tmp_path / "record.json"
    options = "--vocabulary-size 200 --length 24"
    prepare_benchmark.main(["--input", str(text), f"--options={options}", "--out", str(out)])
    record = json.loads(out.read_text("utf-8"))
    assert record["text"]["documents"] == len(SENTENCES)
    assert record["twice_the_text"]["documents"] == 2 * len(SENTENCES)
    assert record["text"]["peak_mebibytes"] > 100
    assert record["text"]["stages"]["all"] > 0
