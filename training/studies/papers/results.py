"""Results of an experiment's commands, and what they say where papers disagree."""

import dataclasses
import math
import pathlib

from keras_tupe import objectives
from keras_tupe._json_file import read_json_object
from training.command.variant import parse
from training.finetune.glue.protocol import COLUMNS, PROTOCOLS
from training.studies.ablation.over_steps import over_steps
from training.studies.ablation.positions import by_position
from training.studies.ablation.results import LOSS, collect
from training.studies.papers.plan import ABLATION, PRESET, squad_cells
from training.study.folder import StudyFolder
from training.study.results import summarize

AVERAGE, F1 = "GLUE average", "SQuAD F1"
_RESULTS = "study.json"
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
        unfinished: list of what was begun and is not finished.
        sections: list of texts: what else the report of the ablation tells.
    """

    summaries: dict
    titles: dict
    shares: dict
    unit: str
    changes: list
    unfinished: list
    sections: list = dataclasses.field(default_factory=list)

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
        done = StudyFolder(out / ABLATION, ABLATION).results()
        ablation = collect(done, baseline)
        paths = [path for run in done.runs if (path := run.folder / _RESULTS).is_file()]
        summaries, records = ablation.summaries, [_read(path) for path in paths]
        summaries = {  # the baseline first
            score: dict(sorted(found.items(), key=lambda item: item[0] != baseline))
            for score, found in summaries.items()
        }
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
    return Results(
        summaries=summaries,
        titles={score: _title(score, scale) for score in summaries},
        shares={} if ablation is None else ablation.shares,
        unit="runs of fine-tuning" if ablation is None else "pre-trainings",
        changes=sorted({change for record in records for change in record.get("changes", [])}),
        unfinished=missing if cells else [],
        sections=[*by_position(ablation), *over_steps(ablation)] if ablation else [],
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
        raise ValueError("its commit must be a text")
    if not isinstance(changes, list) or not all(isinstance(change, str) for change in changes):
        raise ValueError("its changes must be a list of texts")
    if type(record.get("seconds", 0.0)) not in (int, float):
        raise ValueError("its seconds must be a number")


def _title(score, scale):
    """Returns the heading of a score, with its metric."""
    if score == LOSS:
        return f"{score} (nats)"
    if score in objectives.get("causal_lm").numbers(0.0, 1.0):
        return score
    name = score.removeprefix("GLUE ")
    if name not in COLUMNS:
        return f"{score} (%)"
    column = COLUMNS[name]
    return f"{column.title} ({PROTOCOLS[scale.glue.protocol].metrics[column.task]}, %)"


def claims(experiment):
    """Returns what the papers report of the same question.

    Args:
        experiment: an `Experiment` with a `disagreement`.

    Returns:
        List of dictionaries with `who`, `against`, `source`, `row`, `baseline`, `column` and
        `difference`, which is our subtraction of two cells.
    """
    tables = {table.title: table for table in experiment.tables}
    found = []
    for claim in experiment.disagreement.claims:
        table, rest = tables[claim.table], dict(vars(claim))
        del rest["table"]
        cells = [table.value(row, claim.column) for row in (claim.row, claim.baseline)]
        difference = round(cells[0] - cells[1], 2)
        found.append({**rest, "source": table.source, "difference": difference})
    return found


def verdict(experiment, results):
    """Returns what our differences say of the claims, with their intervals.

    Args:
        experiment: an `Experiment` with a `disagreement`.
        results: its `Results`.

    Returns:
        List of dictionaries `position`, `baseline`, `score`, `mean`, `low`, `high`, `count` and
        `text`; numbers are `None` where they are not known.
    """
    reported = claims(experiment)
    found = []
    for pair in experiment.disagreement.contrasts:
        summary = _contrast(results, pair.position, pair.baseline)
        difference = None if summary is None else summary.difference
        if difference is None:
            numbers = dict.fromkeys(("mean", "low", "high", "count"))
            text = "not run, so nothing can be said."
        else:
            numbers = {name: getattr(difference, name) for name in ("mean", "low", "high", "count")}
            same = [claim for claim in reported if claim["against"] == pair.against]
            text = _words(summary, same, results.unit)
        text = f"{parse(pair.position).label} less {parse(pair.baseline).label}: {text}"
        found.append({**vars(pair), "score": results.headline, **numbers, "text": text})
    return found


def _words(summary, reported, unit):
    """Returns what one difference says of the claims that it bears on."""
    found = summary.difference
    said = [f"{claim['who']} {claim['difference']:+.2f}" for claim in reported]
    if math.isnan(found.low):
        return (
            f"{found.mean:+.2f} in one pair of {unit}, which tells nothing of the spread: it can "
            f"neither confirm nor contradict {' or '.join(said)}."
        )
    if summary.has_no_spread:
        return (
            f"{found.mean:+.2f} in each of {found.count} pairs of {unit}, no spread to judge by, "
            "as of models that always give the same answer: it can neither confirm nor contradict "
            f"{' or '.join(said)}."
        )
    held = [found.low <= claim["difference"] <= found.high for claim in reported]
    interval = (
        f"{found.mean:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f} over "
        f"{found.count} pairs of {unit}"
    )
    inside = [text for text, is_held in zip(said, held, strict=True) if is_held]
    outside = [text for text, is_held in zip(said, held, strict=True) if not is_held]
    if not outside:
        rest = (
            f"it holds what all report ({', '.join(inside)}), so these runs cannot tell who is "
            "right; so many would find, 4 times in 5, a true difference of "
            f"{found.detectable:.2f} or more"
        )
    elif not inside:
        rest = f"it holds none of what is reported ({', '.join(outside)})"
    else:
        rest = f"it holds {', '.join(inside)}, and not {', '.join(outside)}"
    return f"{interval}: {rest}."


def _contrast(results, position, baseline):
    """Returns the `Summary` of one method against another, `None` if one is missing."""
    found = results.summaries.get(results.headline, {})
    names = [parse(text).label for text in (position, baseline)]
    if not set(names) <= set(found):
        return None
    other, base = (found[name].values for name in names)
    return summarize({names[0]: other, names[1]: base}, names[1])[names[0]]
