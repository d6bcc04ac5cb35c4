"""The report of an ablation: `ablation.json`, `ablation.md`, `ablation.png`, `tasks.png`."""

import math
import pathlib

from keras_tupe._json_file import read_json_object
from keras_tupe.data import write_json
from training.ablate.collect import ACCURACY, LOSS
from training.ablate.tables import markdown
from training.command.report_files import replaced_picture, replaced_text

MARKDOWN, JSON, PICTURE, TASKS_PICTURE = FILES = (
    "ablation.md",
    "ablation.json",
    "ablation.png",
    "tasks.png",
)


def write(out, ablation, origin):
    """Writes the files; each is the new one or the old one, never a part.

    Args:
        out: folder.
        ablation: an `Ablation`.
        origin: dictionary with `command`, `commit` and `machine` of the report.

    Returns:
        The text of `ablation.md`.
    """
    out = pathlib.Path(out)
    write_json(out / JSON, as_json(ablation, origin))
    text = markdown(ablation, origin)
    replaced_text(out / MARKDOWN, text)
    replaced_picture(out / PICTURE, lambda path: _draw(path, ablation))
    if ablation.task_names:
        replaced_picture(out / TASKS_PICTURE, lambda path: _draw_tasks(path, ablation))
    return text


def _draw(path, ablation):
    from training.ablate.picture import draw

    draw(path, ablation)


def _draw_tasks(path, ablation):
    from training.ablate.tasks_picture import draw_tasks

    draw_tasks(path, ablation)


def recorded_machine(out):
    """Returns the kind of machine that an earlier report in the folder names, or `None`."""
    try:
        return read_json_object(pathlib.Path(out) / JSON)["machine"]
    except (OSError, ValueError, KeyError):
        return None


def as_json(ablation, origin):
    """Returns everything that is known, as values that JSON can hold; what is not known is null."""
    return plain(
        {
            **origin,
            "baseline": ablation.baseline,
            "positions": list(ablation.methods),
            "seeds": ablation.seeds,
            "seconds": sum(result.seconds for result in ablation.results),
            "settings": ablation.facts,
            "unfinished": ablation.unfinished,
            "units": {LOSS: "nats", ACCURACY: "percent", "tasks": "percent"},
            "sign": "difference = method less baseline",
            "methods": {name: _method(ablation, name) for name in ablation.methods},
        }
    )


def _method(ablation, name):
    method = ablation.methods[name]
    scores = {
        score: summaries[name].record()
        for score, summaries in ablation.summaries.items()
        if name in summaries
    }
    shares = ablation.shares.get(name)
    return {
        "position": method.position,
        "options": method.options,
        "encoder_parameters": method.encoder_parameters,
        "scores": scores,
        "share_of_steps_to_baseline": shares
        and {**vars(shares), "num_not_reached": shares.num_not_reached},
        "runs": {seed: vars(result) for seed, result in method.results.items()},
    }


def plain(value):
    """Returns what JSON can hold: texts as keys, lists, `None` for what is not finite."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
