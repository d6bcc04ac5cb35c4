"""Protocols, medians, the best rate, the average, tables, the picture and GLUE's format."""

import json

import numpy as np
import pytest
from matplotlib import image

from keras_tupe.data import GLUE_TASKS
from training.finetune_glue.medians import ColumnResult, average, median, seed_of_median
from training.finetune_glue.picture import draw_grid
from training.finetune_glue.protocol import COLUMNS, HUANG, TUPE, columns_of
from training.finetune_glue.report import record, report
from training.finetune_glue.settings import Settings
from training.finetune_glue.submission import chosen_runs, write_submission

NINE = ["mnli_m", "mnli_mm", "qnli", "qqp", "sst2", "cola", "mrpc", "rte", "stsb"]


def result(**rates):
    """A result with rates `r2=[...]` for 2e-05."""
    return ColumnResult({float(f"{name[1:]}e-05"): values for name, values in rates.items()})


def facts(names, **changes):
    tasks = list(dict.fromkeys(COLUMNS[name].task for name in names))
    plan = Settings(tasks=tuple(tasks)).plan()
    rows = {"train_rows": 5, "all_train_rows": 5, "dev_rows": {}, "cut_rows": {}, "bad_lines": 0}
    return {
        "command": "c",
        "position": "tupe_r",
        "protocol": "tupe",
        "changes": [],
        "seeds": [0, 1, 2],
        "length": 128,
        "seconds": 90.0,
        "metrics": plan.metrics,
        "rows": dict.fromkeys(tasks, rows),
        "constants": dict.fromkeys(names, 50.0),
        **changes,
    }


# === Protocols ===


def test_tupes_protocol_is_that_of_the_paper():
    assert TUPE.learning_rates == (2e-5, 3e-5, 4e-5, 5e-5)
    assert (TUPE.seeds, TUPE.batch_size, TUPE.warmup_share) == (5, 32, 0.06)
    assert {task for task, epochs in TUPE.epochs.items() if epochs == 5} == {"mnli", "qqp", "qnli"}
    assert set(TUPE.epochs.values()) == {5, 10}
    others = {name: m for name, m in TUPE.metrics.items() if m != "accuracy"}
    assert others == {"cola": "matthews", "stsb": "pearson"}
    assert list(COLUMNS) == NINE


def test_huangs_protocol_is_that_of_the_paper():
    assert (HUANG.learning_rates, HUANG.batch_size) == ((3e-5,), 32)
    assert set(HUANG.epochs.values()) == {3}
    assert {name for name, metric in HUANG.metrics.items() if metric == "f1"} == {"qqp", "mrpc"}
    assert HUANG.metrics["mnli"] == HUANG.metrics["sst2"] == "accuracy"
    assert set(Settings(protocol="huang").plan().tasks) == {"mnli", "qqp", "sst2", "mrpc"}


def test_a_plan_is_the_protocol_but_for_what_was_asked():
    plan = Settings().plan()
    assert plan.changes(Settings()) == []
    assert len(plan.tasks) == 8
    assert "wnli" not in plan.tasks
    assert plan.seeds == (0, 1, 2, 3, 4)
    settings = Settings(
        tasks=("STS-B", "cola", "mnli"),
        learning_rates=("1e-4",),
        seeds=2,
        epochs=5,
        dropout=0.0,
        max_train_rows=1000,
    )
    plan = settings.plan()
    assert plan.tasks == ("mnli", "cola", "stsb")
    assert plan.learning_rates == (1e-4,)
    assert plan.changes(settings) == [
        "learning rates 0.0001, not 2e-05, 3e-05, 4e-05, 5e-05",
        "seeds 2, not 5",
        "epochs 5, not 10 (CoLA, STS-B)",
        "dropout 0.0, not 0.1",
        "at most 1,000 training rows of a task",
    ]


def test_mnli_is_two_columns_of_one_training():
    matched, mismatched = columns_of("mnli")
    assert (matched.split, mismatched.split) == ("validation_matched", "validation_mismatched")
    assert (matched.test_split, mismatched.test_split) == ("test_matched", "test_mismatched")
    assert (matched.title, mismatched.title) == ("MNLI-m", "MNLI-mm")
    for column in COLUMNS.values():
        assert {column.split, column.test_split} < set(GLUE_TASKS[column.task].splits)


# === Numbers ===


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 1.0, 2.0], 2.0),
        ([1.0, 2.0, 4.0, 3.0], 2.5),
        ([7.0], 7.0),
        ([None, 5.0, 6.0], 5.0),
        ([None, None, 6.0], None),
        ([None, 6.0], None),
    ],
)
def test_the_median_counts_failed_runs_as_the_worst(values, expected):
    assert median(values) == expected


def test_the_best_rate_is_of_the_best_median_not_of_the_best_run():
    found = result(r2=[60.0, 61.0, 62.0], r3=[10.0, 20.0, 99.0])
    assert found.medians == {2e-5: 61.0, 3e-5: 20.0}
    assert (found.best_rate, found.score) == (2e-5, 61.0)


def test_of_equal_medians_the_lowest_rate_is_chosen():
    assert result(r4=[5.0], r2=[5.0], r3=[5.0]).best_rate == 2e-5


def test_where_all_runs_fail_there_is_no_score():
    found = result(r2=[None, None], r3=[None, 4.0])
    assert (found.best_rate, found.score) == (None, None)
    assert average({"rte": found, "cola": result(r2=[1.0])}) == (None, "mean of 2 of 9 columns")


def test_the_average_is_the_plain_mean_and_says_of_what():
    results = {name: result(r2=[float(place)]) for place, name in enumerate(NINE)}
    assert average(results) == (4.0, "mean of all 9 columns")
    five = {name: results[name] for name in NINE[:5]}
    assert average(five) == (2.0, "mean of 5 of 9 columns")


@pytest.mark.parametrize(
    ("values", "seed"), [([3.0, 1.0, 2.0], 2), ([1.0, 2.0, 3.0, 4.0], 1), ([None, 5.0, 6.0], 1)]
)
def test_the_median_run_is_the_nearest_to_the_median(values, seed):
    assert seed_of_median(values) == seed


def test_each_column_of_mnli_has_a_run_of_its_own_for_the_server():
    matched = result(r2=[1.0, 2.0, 3.0], r3=[0.0, 0.0, 0.0])
    mismatched = result(r2=[0.0, 0.0, 0.0], r3=[3.0, 1.0, 2.0])
    chosen = chosen_runs({"mnli_m": matched, "mnli_mm": mismatched})
    assert chosen == {("mnli", 2e-5, 1): ("mnli_m",), ("mnli", 3e-5, 2): ("mnli_mm",)}
    chosen = chosen_runs({"mnli_m": matched, "mnli_mm": matched, "rte": result(r2=[None])})
    assert chosen == {("mnli", 2e-5, 1): ("mnli_m", "mnli_mm")}


# === Tables ===


def test_tables_mark_the_best_rate_and_say_what_was_reduced():
    names = ["cola", "rte"]
    results = {
        "cola": result(r2=[10.0, None, 12.0], r3=[30.0, 31.5, 32.0]),
        "rte": result(r2=[50.0, 51.0, 52.0], r3=[None, None, 53.0]),
    }
    changed = facts(names, changes=["seeds 3, not 5"])
    changed["rows"]["rte"] = {
        **changed["rows"]["rte"],
        "train_rows": 1000,
        "all_train_rows": 2490,
        "cut_rows": {"train": 12, "rte": 3},
        "bad_lines": 2,
    }
    text = report(results, changed)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "## CoLA (Matthews correlation, %)" in lines
    assert "| learning rate | seed 0 | seed 1 | seed 2 | median | |" in lines
    assert "| 2e-05 | 10.00 | failed | 12.00 | 10.00 | |" in lines
    assert "| 3e-05 | 30.00 | 31.50 | 32.00 | 31.50 | best |" in lines
    assert "| 3e-05 | failed | failed | 53.00 | failed | |" in lines
    assert "| RTE | accuracy | 51.00 | 2e-05 | 50.00 | 1,000 of 2,490 |" in lines
    assert "Mean of 2 of 9 columns: 41.25" in lines
    assert any(
        x.startswith("Not the protocol of the paper") and "seeds 3, not 5" in x for x in lines
    )
    cut = "RTE: rows longer than 128 tokens are cut: 12 of train, 3 of RTE dev."
    assert cut in lines
    assert "RTE: 2 bad lines were left out." in lines


def test_a_protocol_that_was_kept_is_said_to_be():
    text = report({name: result(r2=[1.0]) for name in NINE}, facts(NINE))
    assert "Settings of the protocol: Ke et al. 2021" in text
    assert "Not the protocol" not in text
    assert "Mean of all 9 columns: 1.00" in text


def test_the_record_holds_every_score_and_is_json():
    results = {"mnli_m": result(r2=[1.0, None]), "mnli_mm": result(r2=[3.0, 4.0])}
    found = record(results, facts(list(results)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    columns = found["tasks"]["mnli"]["columns"]
    assert columns["mnli_m"]["rates"] == {"2e-05": [1.0, None]}
    assert columns["mnli_m"]["score"] is None
    assert columns["mnli_mm"] == {
        "rates": {"2e-05": [3.0, 4.0]},
        "medians": {"2e-05": 3.5},
        "best_rate": 2e-5,
        "score": 3.5,
        "constant": 50.0,
    }
    assert (found["average"], found["average_is"]) == (None, "mean of 2 of 9 columns")


@pytest.mark.parametrize("count", [1, 4])
def test_the_picture_has_a_field_for_each_column(count, tmp_path):
    results = {
        "cola": result(r2=[10.0, None, 12.0], r3=[30.0, 31.5, 32.0]),
        "rte": result(r2=[50.0, 51.0, 52.0], r3=[None, None, 53.0]),
        "stsb": result(r2=[None]),
        "sst2": result(r2=[90.0]),
    }
    results = dict(list(results.items())[:count])
    names = dict.fromkeys(results, "accuracy")
    draw_grid(tmp_path / "grid.png", results, dict.fromkeys(results, 50.0), names)
    height, width, _ = image.imread(tmp_path / "grid.png").shape
    assert (width > 1.5 * height) == (count == 4)


# === GLUE's format ===


@pytest.mark.parametrize(
    ("task", "found", "lines"),
    [
        ("cola", [1, 0], ["0\t1", "1\t0"]),
        ("sst2", [0, 1], ["0\t0", "1\t1"]),
        ("rte", [0, 1], ["0\tentailment", "1\tnot_entailment"]),
        ("qnli", [1, 0], ["0\tnot_entailment", "1\tentailment"]),
        ("mnli", [2, 1], ["0\tcontradiction", "1\tneutral"]),
        ("stsb", [2.34567, 3.0], ["0\t2.346", "1\t3.000"]),
        ("stsb", [-0.7, 5.2], ["0\t0.000", "1\t5.000"]),
    ],
)
def test_predictions_are_written_as_glues_server_takes_them(task, found, lines, tmp_path):
    path = tmp_path / "file.tsv"
    write_submission(path, GLUE_TASKS[task], np.arange(2), np.array(found))
    assert path.read_bytes().decode() == "\n".join(["index\tprediction", *lines, ""])
