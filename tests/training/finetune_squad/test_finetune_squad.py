"""Fine-tuning on SQuAD by the command: what it leaves, and what stops it."""

import csv
import json
import shutil

import commands
import keras
import pytest
import squad_cases as cases
from matplotlib.image import imread

from keras_tupe import TupeSpanExtractor
from keras_tupe.data import read_squad
from keras_tupe.metrics import squad_scores
from training.finetune_squad.data import read_questions
from training.finetune_squad.settings import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A preset and two files."""
    folder = tmp_path_factory.mktemp("squad")
    cases.save_preset(folder / "preset")
    cases.write_questions(folder / "train.json", articles=3)
    cases.write_questions(folder / "dev.json", articles=4, seed=1, most=50)
    return folder


@pytest.fixture(scope="module")
def parts(folder):
    """The first three words of a command line that works."""
    return folder / "preset", folder / "train.json", folder / "dev.json"


@pytest.fixture(scope="module")
def done(folder, parts):
    """The folder of a run, and what was printed."""
    _, printed, told = cases.run(*parts, folder / "out")
    return folder / "out", printed, told


@pytest.fixture(scope="module")
def twice(folder, parts):
    """The folder of two runs."""
    cases.run(*parts, folder / "twice", seeds=2)
    return folder / "twice"


# Runs


def test_a_run_leaves_answers_scores_tables_and_a_picture(done, parts):
    out, printed, told = done
    questions, run = read_squad(parts[2]), out / "seed-0"
    results = cases.read(out / "results.json")
    answers, best = (cases.read(run / name) for name in ("predictions.json", "nbest.json"))
    assert list(answers) == [question.id for question in questions]
    for question in questions:
        entries = best[question.id]
        assert entries[0]["text"] == answers[question.id]
        assert all(entry["text"] in question.context for entry in entries)
        assert len({entry["text"] for entry in entries}) == len(entries) <= 20
        assert sum(entry["probability"] for entry in entries) == pytest.approx(1, abs=1e-4)
    scores = squad_scores(questions, answers)
    metrics = cases.read(run / "metrics.json")
    assert (metrics["exact_match"], metrics["f1"]) == (scores.exact_match, scores.f1)
    assert results["exact_match"]["values"] == [scores.exact_match]
    assert results["f1"]["values"] == [scores.f1]
    with open(run / "log.csv", encoding="utf-8") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file)]
    assert losses
    assert all(loss > 0 for loss in losses)
    assert 0 < results["random_spans"]["f1"] < 50
    assert results["random_spans"]["exact_match"] <= results["random_spans"]["f1"]
    assert results["seeds"] == [0]
    assert (results["position"], results["length"]) == ("tupe_r", 40)
    longer = "Position tables were made longer, from 24 to 40 rows (interpolate)."
    assert results["extension"] == longer
    assert results["questions"]["dev"]["used"] == len(questions)
    assert {"commit", "machine", "settings", "seconds"} <= results.keys()
    assert results["command"].startswith("python -m training.finetune_squad ")
    text = (out / "results.md").read_text()
    assert text in printed
    assert "seed 0" in text
    assert longer in text
    assert "run 1 of 1" in told
    assert min(imread(out / "squad.png").shape[:2]) > 200
    assert {path.name for path in out.iterdir() if path.name[0] != "."} == {
        *("seed-0", "results.json", "results.md", "squad.png")
    }


def test_runs_with_other_settings_are_refused_in_the_same_folder(done, parts):
    before = cases.outcome(done[0])
    message = cases.failure(*parts, done[0], epochs=2)
    assert "A run in --out was made with other settings" in message
    assert message.endswith("Received: seed-0, epochs: 1 -> 2")
    message = cases.failure(*parts, done[0], max_dev_questions=3)
    assert "seed-0, dev: " in message
    assert cases.outcome(done[0]) == before


# Mistakes


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"seeds": 0}, "--seeds must be an integer >= 1. Received: 0"),
        ({"length": 18}, "--length must hold 3 special tokens, a question of"),
        ({"doc_stride": 34}, "Received: length=40, max_question_length=4, doc_stride=34"),
        ({"learning_rate": "nan"}, "--learning-rate must be a number above 0. Received: nan"),
        ({"batch_size": 8, "micro_batches": 3}, "must be divisible by --micro-batches"),
        ({"extend": "repeet"}, "the nearest is 'repeat'. Received: 'repeet'"),
        ({"warmup_share": 1}, "--warmup-share must be from 0 to below 1. Received: 1.0"),
        ({"dropuot": 0}, "the nearest option is --dropout"),
        ({"position_file": "nowhere.py"}, "unrecognized|--position-file"),
    ],
)  # fmt: skip
def test_mistakes_in_the_settings_are_answered_with_a_sentence(options, expected, parts, tmp_path):
    preset = parts[0]
    if "position_file" in options:
        preset = shutil.copytree(parts[0], tmp_path / "preset")
        config = (preset / "config.json").read_text()
        (preset / "config.json").write_text(config.replace('"tupe_r"', '"my_own"'))
    message = cases.failure(preset, *parts[1:], tmp_path / "out", **options)
    assert any(part in message for part in expected.split("|")), message
    assert not (tmp_path / "out").exists()


def test_a_row_may_hold_just_one_stride_of_the_passage(parts, tmp_path):
    preset, train, dev = map(str, parts)
    files = {"preset": preset, "train": train, "dev": dev, "out": str(tmp_path / "out")}
    assert Settings(**files, length=19, doc_stride=12, max_question_length=4).problems() == []


def test_all_mistakes_of_a_command_line_are_named_at_once(tmp_path):
    message = cases.failure(None, None, tmp_path / "no.json", None, seeds=0, length=0)
    wanted = ["--seeds", "--length", "--train must name", "--dev must be a file", "--out must name"]
    assert all(part in message for part in [*wanted, "PRESET must be the folder of a preset"])
    assert len(message.splitlines()) == 6


def test_a_preset_without_a_tokenizer_is_refused(parts, tmp_path):
    preset = cases.save_preset(tmp_path / "preset", text=False)
    message = cases.failure(preset, *parts[1:], tmp_path / "out")
    assert "PRESET must have a tokenizer" in message
    message = cases.failure(tmp_path, *parts[1:], tmp_path / "out")
    assert "PRESET must be the folder of a preset of this package" in message


def test_rows_too_long_for_what_a_preset_knows_are_refused(parts, tmp_path):
    preset = cases.save_preset(tmp_path / "preset", position="free_table")
    message = cases.failure(preset, *parts[1:], tmp_path / "out")
    assert (
        "--length must not be above 24, the most tokens that the preset's 'free_table'" in message
    )
    assert message.endswith("Received: length=40")


def test_files_that_are_no_squad_are_both_named(parts, tmp_path):
    (tmp_path / "train.json").write_text("[1]")
    unanswered = cases.read(parts[2])
    for paragraph in [article["paragraphs"][0] for article in unanswered["data"]]:
        paragraph["qas"][0]["answers"] = []
    (tmp_path / "dev.json").write_text(json.dumps(unanswered))
    files = tmp_path / "train.json", tmp_path / "dev.json"
    message = cases.failure(parts[0], *files, tmp_path / "out").splitlines()
    assert message[0].startswith("finetune_squad: --train: There must be an object at this")
    assert "finetune_squad: --dev: A question of SQuAD v1.1 must have an answer" in message[1]
    found = read_questions(Settings(train=parts[1], dev=files[1], skip_bad=True))
    assert (len(found["dev"].questions), len(found["dev"].skipped)) == (8, 4)


# Long runs


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
def test_a_run_that_is_lost_is_done_again_to_the_bit(twice, parts, tmp_path):
    answers = [cases.read(twice / f"seed-{seed}" / "predictions.json") for seed in (0, 1)]
    assert answers[0] != answers[1], "the seeds matter"
    out = shutil.copytree(twice, tmp_path / "out")
    shutil.rmtree(out / "seed-1")
    _, _, told = cases.run(*parts, out, seeds=2)
    assert cases.outcome(out) == cases.outcome(twice)
    assert "1 of 2 runs are there already" in told


@pytest.mark.slow
def test_a_killed_command_goes_on_and_ends_with_the_same_tables(parts, twice, tmp_path):
    out = tmp_path / "out"
    process = cases.start(*parts, out, seeds=2)
    assert commands.wait_until((out / "seed-0").exists, process)
    commands.kill(process)
    assert not (out / "results.json").exists()
    cases.run(*parts, out, seeds=2)
    assert cases.outcome(out) == cases.outcome(twice)


@pytest.mark.slow
def test_training_that_diverges_ends_with_a_sentence(parts, tmp_path):
    words = cases.arguments(*parts, tmp_path / "out", learning_rate=1e38)
    message = commands.refusal("finetune_squad", *words)
    assert "The loss or its gradient is not finite at step" in message
    assert message.endswith("with another --out. Received: learning_rate=1e+38")


@pytest.mark.slow
def test_half_precision_and_segments_and_micro_batches_work(parts, tmp_path):
    preset = cases.save_preset(tmp_path / "preset", num_segments=2)
    options = {"precision": "mixed_bfloat16", "micro_batches": 2, "max_train_questions": 8}
    results, _, _ = cases.run(preset, *parts[1:], tmp_path / "out", **options)
    assert results["f1"]["mean"] > 0


def test_the_command_names_its_options():
    assert "--doc-stride" in commands.done("finetune_squad", "--help")
