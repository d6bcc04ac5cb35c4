"""The benchmark of SQuAD's answers, on a file written here."""

import json

import pytest

from benchmarks import squad_answers
from keras_tupe.data import train_wordpiece

CONTEXT = "On the fourth of May a cat and a dog sat on the mat. " * 3
ANSWERS = {"q1": "cat", "q2": "the mat.", "q3": "four"}


@pytest.fixture
def files(tmp_path):
    entries = [
        {
            "id": name,
            "question": "What?",
            "answers": [{"text": text, "answer_start": CONTEXT.index(text)}],
        }
        for name, text in ANSWERS.items()
    ]
    content = {"data": [{"title": "Cats", "paragraphs": [{"context": CONTEXT, "qas": entries}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(content), encoding="utf-8")
    pieces = train_wordpiece([CONTEXT], 100)
    (tmp_path / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    return tmp_path


def test_what_is_recovered_is_counted_and_what_is_not_is_listed(files, capsys):
    arguments = ["--squad", str(files / "dev.json"), "--vocabulary", str(files / "vocabulary.txt")]
    squad_answers.main([*arguments, "--out", str(files / "record.json")])
    record = json.loads((files / "record.json").read_text(encoding="utf-8"))
    assert record == json.loads(capsys.readouterr().out)
    assert record["command"].startswith("python -m benchmarks.squad_answers --squad ")
    assert (record["questions"], record["windows"]) == (3, 3)
    assert record["exact_match"] == pytest.approx(100 * 2 / 3)
    assert record["not_recovered"] == [{"id": "q3", "answers": ["four"], "prediction": "fourth"}]
    assert record["inside_a_token"] == 1
