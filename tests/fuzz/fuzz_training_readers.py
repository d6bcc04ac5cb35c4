"""Readers of what the commands write and are given: settings, logs, records, results, cards."""

import contextlib
import functools
import io
import pathlib
import tempfile

import experiment_cases
import numpy as np
import run_cases
import tqdm
from fuzz_data_readers import _prepared_files, _repair_prepared
from fuzz_engine import Reader

from keras_tupe.data import find_sources
from keras_tupe.data.rows.json_record import write_json, write_sealed_json
from keras_tupe.export.folder import write_card
from training import compare
from training.command import grid as command_grid
from training.command import log as pretrain_log
from training.command.settings import read_config
from training.draw import sources
from training.finetune.seq2seq.pairs import read_pairs
from training.finetune.squad import runs as finetune_squad_run
from training.finetune.tasks import glue as glue_settings
from training.list import model_table
from training.prepare import folder as prepare_folder
from training.prepare import inspect
from training.prepare import settings as prepare_settings
from training.prepare.documents import Documents, read_documents
from training.presets import folder as checks
from training.presets import load
from training.pretrain.report import load_run
from training.pretrain.settings import Settings
from training.studies.ablation import report, tasks
from training.studies.ablation import results as ablate_results
from training.studies.papers import (
    definition,
    results,
)
from training.studies.papers import plan as experiment_plan
from training.study import folder as folder_of_study
from training.study.folder import StudyFolder

_FINGERPRINT = {"input": ["a.txt"], "length": 8, "valid": 0.1}


def _good(name, content):
    """Returns a function that writes one JSON file."""
    return lambda folder: experiment_cases.write_json(folder / name, content)


@functools.cache
def _ablation_files():
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        path = experiment_cases.write(folder)
        plan = experiment_cases.plan_of(path)
        shifts = {"absolute": [0.5, 0.6], "qkr_4:k=3": [0.1, 0.3]}
        glue = {"absolute": [60.0, 61.0], "qkr_4:k=3": [62.0, 64.0]}
        experiment_cases.make_runs(folder, plan, shifts, glue)
        files = [path for path in folder.rglob("*") if path.is_file()]
        return plan, {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _write_ablation(folder):
    for name, content in _ablation_files()[1].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _read_ablation(folder):
    out = folder / "ablation"
    report.as_json(ablate_results.collect(StudyFolder(out, "ablation").results(), "absolute"))
    folder_of_study.record_of(out)


def _read_experiment_results(folder):
    return results.collect_results(_ablation_files()[0], folder).headline


def _read_reports(folder):
    tasks.Task("glue", glue_settings.Settings()).read(folder / "glue")


def _write_reports(folder):
    (folder / "glue").mkdir()
    found = {"rte": {"columns": {"rte": {"score": 60.0}}}}
    write_json(folder / "glue" / "results.json", {"tasks": found, "average": 60.0, "seconds": 3})


def _write_runs(folder):
    for seed in range(2):
        run = run_cases.make_run(folder / f"run{seed}", 40)
        settings = {"position": "tupe_r", "seed": seed, "position_file": None}
        experiment_cases.write_json(
            run / "settings.json", {"settings": settings, "data": {"rows_hash": "ab"}}
        )


def _read_runs(folder):
    folders = [str(folder / f"run{seed}") for seed in range(2)]
    settings = [compare.settings_of(one) for one in folders]
    labels = compare.labels(folders, settings)
    runs = [load_run(one, label) for one, label in zip(folders, labels, strict=True)]
    if all(run.valid["step"] for run in runs):
        compare.comparison(runs)
    compare.differences(settings)


def _read_log(folder):
    run = folder / "run"
    pretrain_log.read_log(run / "log.csv")
    with pretrain_log.RunLog(run, 20, tensorboard=False) as log:
        log.valid(step=30, tokens=3, valid_loss=1.0, valid_accuracy=0.5)


def _read_config(folder):
    import dataclasses

    fields = [field for field in dataclasses.fields(Settings) if "help" in field.metadata]
    _, problems = read_config(str(folder / "own.toml"), fields)
    _all_received(problems)


def _all_received(problems):
    for problem in problems:
        if "Received" not in problem and "must be below" not in problem:
            raise AssertionError(problem)
    if problems:
        raise ValueError("\n".join(problems))


def _read_experiment(folder):
    from training.machine.cost import TWO_CORES
    from training.studies.papers.plan import make_plan
    from training.studies.papers.settings import Settings as ExperimentSettings

    experiment = definition.find(str(folder / "nobody.toml"))
    if "laptop" in experiment.scales:
        settings = ExperimentSettings(name=str(folder / "nobody.toml"), scale="laptop")
        make_plan(experiment, settings, TWO_CORES)


def _write_grid(folder):
    with contextlib.redirect_stderr(io.StringIO()), command_grid.Grid(folder) as grid:
        cells = [command_grid.Cell(f"seed-{seed}", {"seed": seed}) for seed in range(2)]
        grid.run(cells, lambda cell, place: {"score": 1.0, "seconds": 2.0})


def _read_grid(folder):
    grid = command_grid.Grid(folder)
    for seed in range(2):
        grid.metrics(command_grid.Cell(f"seed-{seed}", {"seed": seed}))
    grid.commits(["seed-0", "seed-1"])


def _write_cards(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "saved_model.pb").write_bytes(b"x")
        config = {"position": "tupe_r", "num_layers": 1, "hidden_dim": 8, "num_heads": 2}
        config |= {"vocabulary_size": 30, "max_sequence_length": 16}
        facts = {"command": "c", "config": config, "metrics": {"loss": 2.5, "curve": [1]}}
        write_card(folder / name, trained_with={"command": "t", "commit": "ab"}, **facts)


def _write_prepared(folder):
    rows = folder / "rows"
    rows.mkdir()
    for name, content in _prepared_files("wordpiece").items():
        (rows / name).write_bytes(content)


def _read_inspected(folder):
    prepare_folder.check_output(folder / "rows", {"a": 1})
    inspect.statistics(folder / "rows")
    inspect.verify(folder / "rows")
    inspect.describe(folder / "rows")


def _read_work_folder(folder):
    with prepare_folder.work_folder(folder / "new", _FINGERPRINT):
        pass


def _write_work_folder(folder):
    (folder / "new.unfinished").mkdir()
    write_sealed_json(folder / "new.unfinished" / "settings.json", _FINGERPRINT)


def _write_documents(folder):
    sources = folder / "text.txt"
    sources.write_text("One two.\n\nThree.\n\nFour five.\n")
    settings = prepare_settings.Settings(input=(str(sources),))
    bar = tqdm.tqdm(disable=True)
    read_documents(find_sources(settings.input), settings, folder / "documents", bar)
    sources.unlink()
    for path in (folder / "documents").iterdir():
        if not path.stat().st_size:
            path.unlink()


def _read_documents(folder):
    found = Documents(folder / "documents")
    for path in (folder / "documents").glob("*.jsonl"):
        found.bucket(int(path.stem, 16))


def _preset_settings(folder):
    experiment_cases.make_preset(folder, "absolute")
    experiment_cases.write_json(folder / "preprocessor.json", {"config": {"tokenizer": {}}})


def _read_preset_settings(folder):
    _, problems = checks.preset_problems(folder, "texts")
    plan = _ablation_files()[0]
    _all_received(problems + experiment_plan.preset_facts(folder, _grafted(plan.scale))[1])


def _grafted(scale):
    import dataclasses

    preset = definition.Preset(size="tiny", length=24, vocabulary_size=160)
    return dataclasses.replace(scale, preset=preset, pretrain=None)


def _write_origin(folder):
    run = run_cases.make_run(folder / "run", 40)
    record = {"settings": {"position": "absolute"}, "data": {}, "command": "c", "commit": "x"}
    experiment_cases.write_json(run / "settings.json", record)
    experiment_cases.make_preset(run / "preset", "absolute")


def _write_example(folder):
    arrays = {"input_word_ids": np.ones((1, 3), "int32"), "pooled_output": np.ones((1, 4), "f")}
    np.savez(folder / "example.npz", **arrays)


READERS = [
    Reader("ablation", _write_ablation, _read_ablation, files=("ablation/*",), quick=8),
    Reader(
        "experiment: results", _write_ablation, _read_experiment_results, ("ablation/*",), quick=8
    ),
    Reader("reports of earlier runs", _write_reports, _read_reports, quick=12),
    Reader("compare", _write_runs, _read_runs, quick=12),
    Reader(
        "log.csv, valid.csv",
        lambda folder: run_cases.make_run(folder / "run", 60) and None,
        _read_log,
        quick=12,
    ),
    Reader(
        "config TOML",
        lambda folder: (
            (folder / "own.toml").write_text(
                'steps = 3\nposition = "t5"\nlearning_rate = 1e-4\nxla = "off"\n'
            )
            and None
        ),
        _read_config,
        quick=12,
    ),
    Reader(
        "experiment TOML",
        lambda folder: experiment_cases.write(folder) and None,
        _read_experiment,
        quick=20,
    ),
    Reader("grid", _write_grid, _read_grid, files=("*/*.json",), quick=12),
    Reader(
        "cards of exports",
        _write_cards,
        model_table,
        files=("*/card.json",),
        quick=12,
    ),
    Reader(
        "prepare: inspect",
        _write_prepared,
        _read_inspected,
        files=("rows/*.json",),
        repair=lambda folder: _repair_prepared(folder / "rows"),
        quick=15,
    ),
    Reader("prepare: work folder", _write_work_folder, _read_work_folder, quick=8),
    Reader("prepare: documents", _write_documents, _read_documents, ("documents/*",), quick=8),
    Reader("small files of a preset", _preset_settings, _read_preset_settings, quick=0),
    Reader(
        "origin of a preset",
        _write_origin,
        lambda folder: load.origin(folder / "run" / "preset"),
        files=("run/settings.json", "run/valid.csv", "run/preset/config.json"),
        quick=12,
    ),
    Reader(
        "SQuAD predictions",
        _good("predictions.json", {"a": "x", "b": ""}),
        finetune_squad_run.read_predictions,
        quick=15,
    ),
    Reader(
        "pairs of texts",
        lambda folder: (folder / "a.tsv").write_text("a b\tc\n\u00e4\td e\n") and None,
        lambda folder: read_pairs(folder / "a.tsv"),
        quick=10,
    ),
    Reader(
        "texts to draw",
        lambda folder: (folder / "a.txt").write_text("One.\n\nTwo.") and None,
        lambda folder: sources.read_texts([str(folder / "a.txt")]),
        quick=10,
    ),
]
