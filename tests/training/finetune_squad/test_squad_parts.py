"""What a fine-tuning on SQuAD is made of: rows, scores by groups, encoders for longer rows."""

import json

import keras
import numpy as np
import pytest
import squad_cases as cases

from keras_tupe import TupeBackbone, TupeSpanExtractor
from keras_tupe.data import squad_n_best
from keras_tupe.metrics import mean_interval, wilson_interval
from training.finetune_squad.data import read_questions, rows_of, spread
from training.finetune_squad.report import changes
from training.finetune_squad.results import answer_positions, score
from training.finetune_squad.settings import Settings
from training.presets.span_extractor import span_extractor

LONG = "anna " * 37 + "lives near the old mill"


@pytest.fixture(scope="module")
def dev(tmp_path_factory):
    """A file of questions."""
    path = tmp_path_factory.mktemp("squad") / "dev.json"
    return cases.write_questions(path, articles=4, seed=1, most=50)


# Rows and answers


def test_rows_are_windows_without_padding_whatever_their_length(tmp_path):
    segments = {"labelled": True, "pad_id": 0, "batch_size": 2, "segments": True}
    train = cases.write_questions(tmp_path / "train.json", articles=9)
    short, wide = (cases.windows_of(train, length=length) for length in (40, 57))
    for windows in (short, wide):
        rows = rows_of(windows, **segments)
        np.testing.assert_array_equal(rows.lengths, windows.padding_mask.sum(axis=1))
        for step in range(rows.num_evaluation_batches):
            inputs, labels, weights = rows.evaluation_batch(step)
            for place, number in enumerate(rows.evaluation_rows(step)):
                size = rows.lengths[number]
                for name in ("token_ids", "segment_ids"):
                    wanted = getattr(windows, name)[number, :size]
                    np.testing.assert_array_equal(inputs[name][place, :size], wanted)
                wanted = windows.start_positions[number], windows.end_positions[number]
                assert tuple(labels[place]) == wanted
                assert weights[place].tolist() == [1, 1]
    assert (short.start_positions < short.end_positions).any()
    whole = np.flatnonzero(short.padding_mask[:, -1] == 0)
    assert len(whole) > 3
    assert {tuple(row) for row in short.token_ids[whole]} <= {
        tuple(row[:40]) for row in wide.token_ids
    }


def test_known_logits_become_known_scores(dev):
    windows = cases.windows_of(dev)
    assert len(windows.token_ids) > len(windows.questions)
    sizes = windows.padding_mask.sum(axis=1)
    outputs = [np.zeros((2, size), "float32") for size in sizes]
    wrong = {question.id for question in windows.questions[::3]}
    for row, index, first, last in zip(
        outputs,
        windows.question_index,
        windows.start_positions,
        windows.end_positions,
        strict=True,
    ):
        if first and windows.questions[index].id not in wrong:
            row[0, first] = row[1, last] = 9
    best = squad_n_best(windows, *spread(windows, outputs))
    answers = {name: found[0][0] for name, found in best.items()}
    for question in windows.questions:
        assert (answers[question.id] == question.answers[0][0]) == (question.id not in wrong)
    found = score(windows, [answers])
    share = 100 * (1 - len(wrong) / len(answers))
    assert found["exact_match"]["values"] == [pytest.approx(share)]
    assert found["f1"]["mean"] == pytest.approx(found["f1"]["values"][0])
    assert found["f1"]["mean"] >= share - 1e-9
    assert spread(windows, outputs)[0].shape == windows.token_ids.shape


def test_answers_have_their_place_in_the_passage_unless_no_window_holds_them(tmp_path):
    entries = [("late", "old mill"), ("huge", LONG[5:]), ("first", "anna")]
    questions = [
        {"id": x, "question": "Which?", "answers": [{"text": y, "answer_start": LONG.index(y)}]}
        for x, y in entries
    ]
    content = {"data": [{"title": "A", "paragraphs": [{"context": LONG, "qas": questions}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(content))
    windows = cases.windows_of(tmp_path / "dev.json", length=24)
    assert len(windows.token_ids) > 3
    assert answer_positions(windows).tolist() == [40, -1, 0]


def test_groups_hold_each_question_once_with_the_scores_of_all_runs(dev):
    windows = cases.windows_of(dev)
    right = {question.id: question.answers[0][0] for question in windows.questions}
    half = {name: text if place % 2 else "" for place, (name, text) in enumerate(right.items())}
    found = score(windows, [right, half])
    assert found["exact_match"]["values"] == [100, 50]
    assert found["f1"]["values"] == [100, 50]
    assert found["f1"]["mean"] == 75
    count = len(right)
    interval = 100 * np.array(mean_interval([0.5, 1.0] * (count // 2))[1:])
    np.testing.assert_allclose([found["f1"]["low"], found["f1"]["high"]], interval)
    interval = 100 * np.array(wilson_interval(round(0.75 * count), count))
    exact = found["exact_match"]
    np.testing.assert_allclose([exact["low"], exact["high"]], interval)
    first_tokens = [
        len(question.context[: question.answers[0][1]].split()) for question in windows.questions
    ]
    sizes = [len(question.context.split()) for question in windows.questions]
    for key, values in (("by_answer_position", first_tokens), ("by_passage_length", sizes)):
        groups = found[key]
        assert sum(group["questions"] for group in groups) == count
        assert len(groups) > 1
        for group in groups:
            inside = [group["first"] <= value <= group["last"] for value in values]
            assert group["questions"] == sum(inside)
            means = [(1 + place % 2) / 2 for place, here in enumerate(inside) if here]
            assert group["exact_match"]["mean"] == pytest.approx(100 * np.mean(means))
            assert group["f1"]["mean"] == pytest.approx(100 * np.mean(means))


def test_parts_of_an_answer_count_for_f1_alone(dev):
    windows = cases.windows_of(dev)
    longer = {q.id: f"{q.answers[0][0]} was" for q in windows.questions}
    found = score(windows, [longer])
    for entry in [found, *found["by_answer_position"], *found["by_passage_length"]]:
        assert entry["exact_match"]["mean"] == entry["exact_match"]["low"] == 0
        assert 60 < entry["f1"]["mean"] < 85


def test_a_value_on_an_edge_belongs_to_the_group_that_begins_there(tmp_path):
    context = "the " * 32 + "cat " + "was " * 31
    entry = {"text": "cat", "answer_start": context.index("cat")}
    questions = [{"id": "q", "question": "Which animal?", "answers": [entry]}]
    content = {"data": [{"title": "A", "paragraphs": [{"context": context, "qas": questions}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(content))
    found = score(cases.windows_of(tmp_path / "dev.json"), [{"q": "cat"}])
    for key, wanted in (("by_answer_position", (32, 63)), ("by_passage_length", (64, 95))):
        assert [(group["first"], group["last"]) for group in found[key]] == [wanted]


def test_a_part_of_the_questions_is_always_the_same(dev, tmp_path):
    train = cases.write_questions(tmp_path / "train.json", articles=40)
    chosen = Settings(train=train, dev=dev, max_train_questions=30)
    one, other = (read_questions(chosen)["train"] for _ in range(2))
    assert one.questions == other.questions
    assert (
        one.digest()
        == other.digest()
        != read_questions(Settings(train=train, dev=dev))["train"].digest()
    )
    assert (len(one.questions), one.total) == (30, 120)
    numbers = [int(question.id.split("-")[0]) for question in one.questions]
    assert numbers == sorted(numbers)
    assert max(numbers) > 30, "not only those of the first passages"


def test_what_differs_from_the_protocol_is_said():
    official = {"train": 87_599, "dev": 10_570}
    assert changes(Settings(), official) == []
    assert changes(Settings(length=640, seeds=5), official) == []
    found = changes(Settings(epochs=2, learning_rate=1e-4), {"train": 100, "dev": 10_570})
    assert found == [
        "learning rate 0.0001, not 3e-05",
        "epochs 2, not 3",
        "trained on 100 questions, not the official 87,599",
    ]
    assert changes(Settings(length=256), official) == ["rows of 256 tokens, not 512"]


# Longer rows


def outputs(model, ids):
    return keras.ops.convert_to_numpy(
        model({"token_ids": ids, "padding_mask": np.ones_like(ids)})["sequence_output"]
    )


@pytest.mark.parametrize(
    ("position", "note"),
    [
        ("tupe_r", "Position tables were made longer, from 12 to 20 rows (repeat)."),
        ("qkr_4", "Distances of 12 tokens and more count as 11."),
        ("t5", ""),
    ],
)
def test_an_encoder_is_made_longer_only_where_it_must(position, note):
    backbone = TupeBackbone(30, 1, 2, 16, 32, position=position, max_sequence_length=12)
    short, long = np.arange(12)[None] % 30, np.arange(20)[None] % 30
    same, nothing = span_extractor(backbone, 12, "repeat")
    assert (same.backbone, nothing) == (backbone, "")
    model, said = span_extractor(backbone, 20, "repeat")
    assert type(model) is TupeSpanExtractor
    assert said == note
    np.testing.assert_allclose(outputs(model.backbone, short), outputs(backbone, short), atol=1e-6)
    assert outputs(model.backbone, long).shape == (1, 20, 16)


def test_an_encoder_that_cannot_be_made_longer_is_refused():
    backbone = TupeBackbone(30, 1, 2, 16, 32, position="free_table", max_sequence_length=12)
    with pytest.raises(ValueError, match=r"cannot be made longer.*'free_table'.*length=20$"):
        span_extractor(backbone, 20, "interpolate")
