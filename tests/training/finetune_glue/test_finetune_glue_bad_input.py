"""Every mistake in front of a grid ends in a sentence, all of them at once, with nothing begun."""

import json

import glue_cases as cases
import pytest


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    return cases.save_preset(tmp_path_factory.mktemp("preset") / "preset")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return cases.write_tasks(tmp_path_factory.mktemp("data"), "sst2", "rte", train=8, dev=8)


COMMANDS = {
    "task": ({}, ("qnly",), "the nearest is 'qnli'. Received: 'qnly'"),
    "wnli": ({}, ("wnli",), "--tasks has no WNLI: both papers leave it out"),
    "twice": ({}, ("rte", "RTE"), "--tasks must name each task once. Received: rte RTE"),
    "protocol": ({"protocol": "tup"}, ("rte",), "the nearest is 'tupe'. Received: 'tup'"),
    "no seeds": ({"seeds": 0}, ("rte",), "--seeds must be an integer >= 1. Received: 0"),
    "half a seed": ({"seeds": 1.5}, ("rte",), "--seeds must be an integer, or none."),
    "no epochs": ({"epochs": 0}, ("rte",), "--epochs must be an integer >= 1. Received: 0"),
    "no rows": ({"batch_size": 0}, ("rte",), "--batch-size must be an integer >= 1."),
    "no part": ({"max_train_rows": 0}, ("rte",), "--max-train-rows must be an integer >= 1."),
    "rate": ({"learning_rates": ["fast"]}, ("rte",), "numbers above 0. Received: 'fast'"),
    "no rate": ({"learning_rates": ["0"]}, ("rte",), "numbers above 0. Received: '0'"),
    "nan": ({"learning_rates": ["nan"]}, ("rte",), "numbers above 0. Received: 'nan'"),
    "same rates": (
        {"learning_rates": ["1e-4", "0.0001"]},
        ("rte",),
        "--learning-rates must differ. Received: 1e-4 0.0001",
    ),
    "dropout": ({"dropout": 1.0}, ("rte",), "--dropout must be from 0 to below 1."),
    "warm-up": ({"warmup_share": 1.0}, ("rte",), "--warmup-share must be from 0 to below 1."),
    "short": ({"length": 3}, ("rte",), "--length must be an integer >= 6"),
    "long": ({"length": 25}, ("rte",), "--length must not be above 24, the last position"),
    "parts": ({"micro_batches": 3}, ("rte",), "--batch-size must be divisible by --micro-batches"),
    "option": ({"seedz": 3}, ("rte",), "the nearest option is --seeds."),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_settings_that_cannot_be_are_told(case, preset, data, tmp_path):
    options, tasks, expected = COMMANDS[case]
    message = cases.failure(preset, data, tmp_path / "out", *tasks, **options)
    assert expected in message
    assert len(message.splitlines()) == 1
    assert not any(tmp_path.iterdir())


def test_all_mistakes_are_told_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    message = cases.failure(
        tmp_path / "none",
        tmp_path / "nowhere",
        tmp_path / "file",
        "colla",
        seeds=0,
        learning_rates=["x", "-1"],
    )
    lines = message.splitlines()
    assert len(lines) == 7
    for part in ("PRESET must", "--data must", "--out must", "--tasks must", "--seeds must"):
        assert sum(part in line for line in lines) == 1
    assert sum("--learning-rates must" in line for line in lines) == 2
    assert all("Received: " in line for line in lines)


def test_a_command_without_anything_says_what_it_needs(tmp_path):
    message = cases.failure(None, None, None)
    assert "PRESET must be the folder of a preset. Received: none" in message
    assert "--data must name a folder" in message
    assert "--out must name the folder" in message


def test_a_preset_without_a_tokenizer_is_told(data, tmp_path):
    preset = cases.save_preset(tmp_path / "preset", "backbone without text")
    message = cases.failure(preset, data, tmp_path / "out", "rte")
    assert "PRESET must have a tokenizer" in message
    assert message.endswith("without tokenizer.json")


def test_a_broken_preset_is_told(data, tmp_path):
    preset = cases.save_preset(tmp_path / "preset")
    (preset / "model.weights.h5").write_bytes(b"no weights")
    (preset / "task.weights.h5").unlink()
    message = cases.failure(preset, data, tmp_path / "out", "rte")
    assert "The weights file is damaged" in message
    config = json.loads((preset / "config.json").read_text())
    config["config"]["position"] = "of_my_own"
    (preset / "config.json").write_text(json.dumps(config))
    message = cases.failure(preset, data, tmp_path / "out", "rte")
    assert "--position-file on the command line" in message


# === The data ===


def test_all_tasks_that_are_missing_are_told(preset, data, tmp_path):
    message = cases.failure(preset, data, tmp_path / "out", "cola", "rte", "qnli")
    lines = message.splitlines()
    assert len(lines) == 4  # train and dev of both
    assert all(line.startswith("finetune_glue: ") for line in lines)
    assert [sum(name in line for line in lines) for name in ("CoLA", "QNLI", "RTE")] == [2, 2, 0]


def test_a_label_outside_the_set_is_told_with_its_line(preset, tmp_path):
    cases.write_tasks(tmp_path / "data", "rte", train=8, dev=8)
    path = tmp_path / "data" / "RTE" / "dev.tsv"
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace("not_entailment", "no")
    path.write_text("\n".join(lines) + "\n")
    message = cases.failure(preset, tmp_path / "data", tmp_path / "out", "rte")
    assert "A label of RTE must be one of ['entailment', 'not_entailment']" in message
    assert "RTE/dev.tsv', line 3" in message
    assert "label 'no'" in message


def test_a_score_that_is_no_number_is_told_with_its_line(preset, tmp_path):
    cases.write_tasks(tmp_path / "data", "stsb", train=8, dev=8)
    path = tmp_path / "data" / "STS-B" / "train.tsv"
    path.write_text(path.read_text().replace("2.000", "two"))
    message = cases.failure(preset, tmp_path / "data", tmp_path / "out", "stsb")
    assert "A score of STS-B must be a number from 0 to 5." in message
    assert "STS-B/train.tsv', line 4, score 'two'" in message


def test_another_number_of_rows_than_the_official_is_told(preset, data, tmp_path):
    message = cases.failure(preset, data, tmp_path / "out", "sst2", check_counts=None)
    assert "The official train split of SST-2 has 67349 rows" in message
    assert "--no-check-counts" in message


def test_a_missing_test_set_is_told_before_anything_is_trained(preset, data, tmp_path):
    message = cases.failure(preset, data, tmp_path / "out", "sst2", submission=True)
    assert "'test.tsv' is missing" in message
