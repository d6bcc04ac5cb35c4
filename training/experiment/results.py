"""What came out of an experiment's commands, by score and method."""

import dataclasses
import pathlib

from keras_tupe._json_file import read_json_object
from training.ablate.collect import ACCURACY, LOSS, collect
from training.ablate.statistics import summarize
from training.experiment.commands import ABLATION, PRESET, squad_cells
from training.finetune_glue.protocol import COLUMNS, PROTOCOLS
from training.presets.variant import parse

AVERAGE, F1 = "GLUE average", "SQuAD F1"
_RESULTS = "results.json"
_SQUAD_SCORES = {"SQuAD EM": "exact_match", F1: "f1"}


@dataclasses.dataclass(frozen=True)
class Results:
    """What an experiment found.

    Attributes:
        summaries: dictionary score -> label of a method -> `Summary`, the first label the
            baseline; losses in nats, all else in percent.
        titles: dictionary score -> heading, with the metric.
        shares: dictionary label -> `Shares`, where models were pre-trained.
        unit: what the pairs behind differences are, such as "pre-trainings".
        changes: list of sentences: what the commands say that differs from a paper's protocol.
        commits: sorted list of the commits that the runs were made with.
        seconds: of all runs.
        unfinished: list of what was begun and is not finished.
    """

    summaries: dict
    titles: dict
    shares: dict
    unit: str
    changes: list
    commits: list
    seconds: float
    unfinished: list

    @property
    def headline(self):
        """Name of the score that the experiment is about: of a task, or else the loss."""
        glue = [name for name in self.summaries if name.startswith("GLUE ")]
        wanted = (AVERAGE, F1, *glue, LOSS)
        return next(name for name in wanted if name in self.summaries)


def collect_results(plan, out):
    """Returns the `Results` of an experiment's folder.

    Args:
        plan: the `Plan` that was carried out.
        out: its folder.

    Raises:
        ValueError: if results are missing or none of its commands.
    """
    out, scale = pathlib.Path(out), plan.scale
    cells, ablation = squad_cells(scale), None
    if scale.pretrain is not None:
        baseline = parse(scale.baseline).label
        ablation = collect(out / ABLATION, baseline)
        paths = sorted((out / ABLATION).glob(f"runs/*/seed-*/*/{_RESULTS}"))
        summaries, records = ablation.summaries, [_read(path) for path in paths]
        summaries = {  # the baseline first
            score: dict(sorted(found.items(), key=lambda item: item[0] != baseline))
            for score, found in summaries.items()
        }
        seconds = sum(result.seconds for result in ablation.results)
        commits = {result.commit for result in ablation.results}
    if cells:
        found = {cell: out / cell.folder / _RESULTS for cell in cells}
        found = {cell: _read(path) for cell, path in found.items() if path.is_file()}
        missing = [_label(cell) + f", {cell.run}" for cell in cells if cell not in found]
        if not found:
            raise ValueError(
                f"There must be results of SQuAD for a report. Received: {str(out)!r} without "
                f"those of {'; '.join(missing)}"
            )
        summaries, records = _by_length(found), list(found.values())
        tuning = sum(record.get("seconds", 0.0) for record in records)
        seconds = tuning + (seconds if ablation else 0.0)
        commits = {record.get("commit") for record in records} | (commits if ablation else set())
    return Results(
        summaries=summaries,
        titles={score: _title(score, scale) for score in summaries},
        shares={} if ablation is None else ablation.shares,
        unit="runs of fine-tuning" if ablation is None else "pre-trainings",
        changes=sorted({change for record in records for change in record.get("changes", [])}),
        commits=sorted(map(str, commits)),
        seconds=seconds,
        unfinished=(ablation.unfinished if ablation else []) + (missing if cells else []),
    )


def _label(cell):
    return f"{parse(cell.position).label}, {cell.length} tokens"


def _by_length(found):
    """Returns the summaries of SQuAD, of a dictionary `SquadCell` -> record of its command."""
    summaries = {}
    for score, name in _SQUAD_SCORES.items():
        numbers = {}
        for cell, record in found.items():
            values = dict(enumerate(record[name]["values"]))
            if cell.run != PRESET:  # a pair is of one pre-training
                values = {int(cell.run.removeprefix("seed-")): record[name]["mean"]}
            numbers.setdefault(_label(cell), {}).update(values)
        summaries[score] = summarize(numbers, next(iter(numbers)))
    return summaries


def _read(path):
    try:
        record = read_json_object(path)
        _check_kinds(record)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"The results of a command must be what it wrote ({error}). Received: {str(path)!r}"
        ) from None
    return record


def _check_kinds(record):
    """Checks what is taken of the record of any command; `ValueError` if it is of another kind."""
    changes = record.get("changes", [])
    if not isinstance(record.get("commit"), str | None):
        raise ValueError("its commit is no text")
    if not isinstance(changes, list) or not all(isinstance(change, str) for change in changes):
        raise ValueError("its changes are no list of texts")
    if type(record.get("seconds", 0.0)) not in (int, float):
        raise ValueError("its seconds are no number")


def _title(score, scale):
    """Returns the heading of a score, with its metric."""
    if score == LOSS:
        return f"{score} (nats)"
    if score == ACCURACY:
        return f"{score} (%)"
    name = score.removeprefix("GLUE ")
    if name not in COLUMNS:
        return f"{score} (%)"
    column = COLUMNS[name]
    return f"{column.title} ({PROTOCOLS[scale.glue['protocol']].metrics[column.task]}, %)"


def contrast(results, score, position, baseline):
    """Returns the `Summary` of one method against another, `None` if one is missing.

    Args:
        results: a `Results`.
        score: name of a score.
        position, baseline: methods as on a command line.
    """
    found = results.summaries.get(score, {})
    names = [parse(text).label for text in (position, baseline)]
    if not set(names) <= set(found):
        return None
    other, base = (found[name].values for name in names)
    return summarize({names[0]: other, names[1]: base}, names[1])[names[0]]
