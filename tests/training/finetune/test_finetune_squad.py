"""SQuAD: rows, answers, scores by groups, encoders for longer rows, and learning to answer."""

import json

import keras
import numpy as np
import pytest
import squad_cases as cases

from keras_tupe import TupeBackbone, TupeSpanExtractor
from keras_tupe.data import read_squad, squad_n_best
from keras_tupe.metrics import mean_interval, squad_scores, wilson_interval
from training.finetune.squad import (
    answer_positions,
    changes,
    read_questions,
    rows_of,
    score,
    spread,
)
from training.finetune.tasks.squad import Settings
from training.presets.load import span_extractor

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


def test_a_value_on_an_edge_belongs_to_the_group_that_begins_there(tmp_path):
    context = "the " * 32 + "cat " + "was " * 31
    entry = {"text": "cat", "answer_start": context.index("cat")}
    questions = [{"id": "q", "question": "Which animal?", "answers": [entry]}]
    content = {"data": [{"title": "A", "paragraphs": [{"context": context, "qas": questions}]}]}
    (tmp_path / "dev.json").write_text(json.dumps(content))
    found = score(cases.windows_of(tmp_path / "dev.json"), [{"q": "cat"}])
    for key, wanted in (("by_answer_position", (32, 63)), ("by_passage_length", (64, 95))):
        assert [(group["first"], group["last"]) for group in found[key]] == [wanted]


def test_a_part_of_the_questions_is_told_with_the_whole(dev, tmp_path):
    train = cases.write_questions(tmp_path / "train.json", articles=40)
    part = read_questions(Settings(train=train, valid=dev, limit=30, valid_limit=5))
    whole = read_questions(Settings(train=train, valid=dev))
    assert [len(part[name].questions) for name in ("train", "valid")] == [30, 5]
    assert [part[name].total for name in ("train", "valid")] == [120, len(whole["valid"].questions)]
    numbers = [int(question.id.split("-")[0]) for question in part["train"].questions]
    assert numbers == sorted(numbers)
    assert max(numbers) > 30, "not only those of the first passages"
    assert part["train"].digest() != whole["train"].digest()


def test_what_differs_from_the_protocol_is_said():
    official = {"train": 87_599, "valid": 10_570}
    assert changes(Settings(), official) == []
    assert changes(Settings(length=640, seeds=5), official) == []
    found = changes(Settings(epochs=3, learning_rate=1e-4), {"train": 100, "valid": 10_570})
    assert found == [
        "learning rate 0.0001, not 3e-05",
        "epochs 3, not 2",
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


# Runs


@pytest.fixture(scope="module")
def parts(dev, tmp_path_factory):
    """The first three words of a command line that works."""
    folder = tmp_path_factory.mktemp("parts")
    train = cases.write_questions(folder / "train.json", articles=3)
    return cases.save_preset(folder / "preset"), train, dev


def test_a_run_leaves_answers_and_their_scores(parts, tmp_path):
    results, printed, _ = cases.run(*parts, tmp_path / "out")
    questions, run = read_squad(parts[2]), tmp_path / "out" / "seed-0"
    answers, best = (cases.read(run / name) for name in ("predictions.json", "nbest.json"))
    assert list(answers) == [question.id for question in questions]
    for question in questions:
        entries = best[question.id]
        assert entries[0]["text"] == answers[question.id]
        assert all(entry["text"] in question.context for entry in entries)
        assert len({entry["text"] for entry in entries}) == len(entries) <= 20
        assert sum(entry["probability"] for entry in entries) == pytest.approx(1, abs=1e-4)
    scores = squad_scores(questions, answers)
    assert results["exact_match"]["values"] == [scores.exact_match]
    assert results["f1"]["values"] == [scores.f1]
    assert 0 < results["random_spans"]["f1"] < 50
    assert results["random_spans"]["exact_match"] <= results["random_spans"]["f1"]
    assert (results["position"], results["length"]) == ("tupe_r", 40)
    longer = "Position tables were made longer, from 24 to 40 rows (interpolate)."
    assert results["extension"] == longer
    assert longer in printed
    assert results["questions"]["valid"]["used"] == len(questions)


def test_rows_hold_a_stride_and_no_more_than_a_preset_knows(parts, tmp_path):
    preset, train, dev = map(str, parts)
    files = {"preset": preset, "train": train, "valid": dev, "out": str(tmp_path / "out")}
    assert Settings(**files, length=19, doc_stride=12, max_question_length=4).problems() == []
    preset = cases.save_preset(tmp_path / "preset", position="free_table")
    message = cases.failure(preset, *parts[1:], tmp_path / "out")
    known = "--length must not be above 24, the most tokens that the preset's 'free_table'"
    assert known in message
    assert message.endswith("Received: length=40")


def test_files_that_are_no_squad_are_both_named(parts, tmp_path):
    (tmp_path / "train.json").write_text("[1]")
    unanswered = cases.read(parts[2])
    for paragraph in [article["paragraphs"][0] for article in unanswered["data"]]:
        paragraph["qas"][0]["answers"] = []
    (tmp_path / "dev.json").write_text(json.dumps(unanswered))
    files = tmp_path / "train.json", tmp_path / "dev.json"
    message = cases.failure(parts[0], *files, tmp_path / "out").splitlines()
    assert message[0].startswith("finetune squad: --train: There must be an object at this")
    assert "finetune squad: --valid: A question of SQuAD v1.1 must have an answer" in message[1]
    found = read_questions(Settings(train=parts[1], valid=files[1], skip_bad=True))
    assert (len(found["valid"].questions), len(found["valid"].skipped)) == (8, 4)


@pytest.mark.slow
def test_a_small_model_learns_to_answer(tmp_path):
    preset = cases.save_preset(tmp_path / "preset", sizes=(2, 4, 32, 64), position="tupe_a")
    train = cases.write_questions(tmp_path / "train.json", articles=400)
    dev = cases.write_questions(tmp_path / "dev.json", articles=60, seed=1)
    sizes = {"epochs": 12, "batch_size": 32, "learning_rate": 0.005}
    results, _, _ = cases.run(preset, train, dev, tmp_path / "out", save_presets=True, **sizes)
    assert results["exact_match"]["mean"] > 90
    keras.utils.clear_session()
    model = TupeSpanExtractor.from_preset(str(tmp_path / "out" / "seed-0" / "preset"))
    question = read_squad(dev)[0]
    logits = model.predict(([question.question], [question.context]), verbose=0)
    assert logits.shape == (1, 2, 40)
    windows = cases.windows_of(dev)
    whole = windows.padding_mask[0].sum()
    first, last = logits[0, :, :whole].argmax(axis=-1)
    spans = windows.spans[0]
    place = windows.context_positions[0]
    said = question.context[spans[first - place, 0] : spans[last - place, 1]]
    answers = cases.read(tmp_path / "out" / "seed-0" / "predictions.json")
    assert said == answers[question.id]


@pytest.mark.slow
def test_half_precision_and_segments_and_micro_batches_work(parts, tmp_path):
    preset = cases.save_preset(tmp_path / "preset", num_segments=2)
    options = {"precision": "mixed_bfloat16", "micro_batches": 2, "limit": 8}
    results, _, _ = cases.run(preset, *parts[1:], tmp_path / "out", **options)
    assert results["f1"]["mean"] > 0
