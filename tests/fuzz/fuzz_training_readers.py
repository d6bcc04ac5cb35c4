"""Readers of what the commands write and are given: settings, logs, records, results, cards."""

import dataclasses
import functools
import pathlib
import tempfile

import experiment_cases
import run_cases
import tqdm
from fuzz_data_readers import repair_prepared, write_prepared
from fuzz_engine import Reader

from keras_tupe.data import find_sources, write_json
from keras_tupe.export.folder import write_card
from training import compare
from training.command import log as pretrain_log
from training.command.settings import read_config
from training.draw import sources
from training.finetune.seq2seq import read_pairs
from training.finetune.squad import read_predictions
from training.finetune.tasks import glue as glue_settings
from training.list import model_table
from training.prepare import folder as prepare_folder
from training.prepare import inspect
from training.prepare import settings as prepare_settings
from training.prepare.documents import Documents, read_documents
from training.presets import load
from training.pretrain.report import load_run
from training.pretrain.settings import Settings
from training.studies.ablation import tasks
from training.studies.ablation.report import Methods
from training.studies.papers import definition
from training.studies.papers.report import Ours
from training.study import folder as folder_of_study
from training.study.folder import StudyFolder


def _write_ablation(folder):
    plan = experiment_cases.plan_of(experiment_cases.write(folder))
    shifts = {"absolute": [0.5, 0.6], "qkr_4:k=3": [0.1, 0.3]}
    glue = {"absolute": [60.0, 61.0], "qkr_4:k=3": [62.0, 64.0]}
    experiment_cases.make_runs(folder, plan, shifts, glue)


@functools.cache
def _plan():
    with tempfile.TemporaryDirectory() as place:
        return experiment_cases.plan_of(experiment_cases.write(pathlib.Path(place)))


def _read_ablation(folder):
    Methods(StudyFolder(folder, "").results(), "absolute").record()
    folder_of_study.record_of(folder)


def _read_experiment_results(folder):
    return Ours(_plan(), StudyFolder(folder, "").results()).headline


def _read_reports(folder):
    tasks.Task("glue", glue_settings.Settings()).read(folder / "glue")


def _write_reports(folder):
    (folder / "glue").mkdir()
    found = {"rte": {"columns": {"rte": {"score": 60.0}}}}
    write_json(folder / "glue" / "study.json", {"tasks": found, "average": 60.0, "seconds": 3})


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
    from training.studies.papers.runs import make_plan
    from training.studies.papers.settings import Settings as ExperimentSettings

    experiment = definition.find(str(folder / "nobody.toml"))
    if "laptop" in experiment.scales:
        settings = ExperimentSettings(name=str(folder / "nobody.toml"), scale="laptop")
        make_plan(experiment, settings, TWO_CORES)


def _write_cards(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "saved_model.pb").write_bytes(b"x")
        config = {"position": "tupe_r", "num_layers": 1, "hidden_dim": 8, "num_heads": 2}
        config |= {"vocabulary_size": 30, "max_sequence_length": 16}
        facts = {"command": "c", "config": config, "metrics": {"loss": 2.5, "curve": [1]}}
        write_card(folder / name, trained_with={"command": "t", "commit": "ab"}, **facts)


def _read_inspected(folder):
    prepare_folder.check_output(folder / "rows", {"a": 1})
    inspect.statistics(folder / "rows")
    inspect.verify(folder / "rows")
    inspect.describe(folder / "rows")


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


def _write_origin(folder):
    run = run_cases.make_run(folder / "run", 40)
    record = {"settings": {"position": "absolute"}, "data": {}, "command": "c", "commit": "x"}
    experiment_cases.write_json(run / "settings.json", record)
    experiment_cases.make_preset(run / "preset", "absolute")


_OWN = 'steps = 3\nposition = "t5"\nlearning_rate = 1e-4\nxla = "off"\n'


def _file(name, text):
    """Returns a function that writes one file of text."""
    return lambda folder: (folder / name).write_text(text)


READERS = [
    Reader("ablation", _write_ablation, _read_ablation, files=("*/run.json", "study.json")),
    Reader("experiment: results", _write_ablation, _read_experiment_results, ("*/run.json",)),
    Reader("compare", _write_runs, _read_runs),
    Reader("log.csv, valid.csv", lambda folder: run_cases.make_run(folder / "run", 60), _read_log),
    Reader("config TOML", _file("own.toml", _OWN), _read_config),
    Reader("experiment TOML", experiment_cases.write, _read_experiment),
    Reader("reports of earlier runs", _write_reports, _read_reports),
    Reader("cards of exports", _write_cards, model_table, files=("*/card.json",)),
    Reader(
        "prepare: inspect",
        lambda folder: write_prepared(folder / "rows"),
        _read_inspected,
        files=("rows/*.json",),
        repair=lambda folder: repair_prepared(folder / "rows"),
    ),
    Reader("prepare: documents", _write_documents, _read_documents, ("documents/*",)),
    Reader(
        "origin of a preset",
        _write_origin,
        lambda folder: load.origin(folder / "run" / "preset"),
        files=("run/settings.json", "run/valid.csv", "run/preset/config.json"),
    ),
    Reader(
        "SQuAD predictions",
        _file("predictions.json", '{"a": "x", "b": ""}'),
        read_predictions,
    ),
    Reader(
        "pairs of texts",
        _file("a.tsv", "a b\tc\n\u00e4\td e\n"),
        lambda folder: read_pairs(folder / "a.tsv"),
    ),
    Reader(
        "texts to draw",
        _file("a.txt", "One.\n\nTwo."),
        lambda folder: sources.read_texts([str(folder / "a.txt")]),
    ),
]
