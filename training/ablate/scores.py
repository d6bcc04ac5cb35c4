"""The scores that the tasks of an ablation's runs wrote."""

import pathlib

from training.ablate.tasks import RESULTS, STEPS, asked, scores_at
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe._json_file import read_json_object

_MOST = 1000.0  # percent; NaN is not below it


def read_scores(run, step=None):
    """Returns what the tasks of a run scored.

    Args:
        run: folder of the run.
        step: that of the preset; `None` for the last one.

    Returns:
        Dictionary: name of a score -> percent; empty without tasks.
    """
    readers = {"glue": _glue, "squad": _squad, "blimp": _blimp}
    scores = {}
    for name, scores_of in readers.items():
        path = scores_at(run, step) / name / RESULTS
        if path.is_file():
            try:
                results = read_json_object(path)
                asked(name, results.get("command", ""))
                found = scores_of(results)
                wrong = [score for score, value in found.items() if not _is_score(value)]
                if wrong:
                    raise ValueError(f"{wrong[0]} is {str(found[wrong[0]])[:100]}")
                scores |= found
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"The results of a task must be those that its command wrote: "
                    f"{type(error).__name__}: {error}. Received: {str(path)!r}"
                ) from None
    return scores


def read_scores_at_steps(run):
    """Returns what the tasks scored with the presets on the way of a run.

    Args:
        run: folder of the run.

    Returns:
        Dictionary: step, ascending -> dictionary as of `read_scores`.
    """
    names = [path.name for path in (pathlib.Path(run) / STEPS).glob("step-*")]
    steps = sorted(int(name[5:]) for name in names if name[5:].isdigit())
    return {step: read_scores(run, step) for step in steps}


def read_positions(run):
    """Returns what `keras-tupe evaluate perplexity` found for a run, `None` if it was not asked.

    Args:
        run: folder of the run.

    Returns:
        Dictionary of `positions`, `numbers` and `bins`.

    Raises:
        ValueError: if its results are not what it wrote.
    """
    path = pathlib.Path(run) / "perplexity" / RESULTS
    if not path.is_file():
        return None
    try:
        results = read_json_object(path)
        asked("perplexity", results.get("command", ""))
        found = {name: results[name] for name in ("positions", "trained_length", "numbers", "bins")}
        wrong = [one for one in found["bins"] if not _is_bin(one)]
        if wrong or not found["bins"]:
            raise ValueError(f"its bins are wrong: {str(wrong)[:100]}")
        return found
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"The results of a task must be those that its command wrote: "
            f"{type(error).__name__}: {error}. Received: {str(path)!r}"
        ) from None


def _is_bin(one):
    counts = [one[name] for name in ("first", "last", "tokens")]
    loss = one["loss"]
    is_loss = loss is None or (type(loss) in (int, float) and 0 <= loss <= _MOST)
    return is_loss and all(type(count) is int and count >= 0 for count in counts)


def _is_score(value):
    """Whether it is a number, or `None` for a model that has no score."""
    return value is None or (type(value) in (int, float) and abs(value) <= _MOST)


def _glue(results):
    columns = {
        f"GLUE {name}": column["score"]
        for task in results["tasks"].values()
        for name, column in task["columns"].items()
    }
    average = {"GLUE average": results["average"]} if len(columns) > 1 else {}
    return {**columns, **average}


def _squad(results):
    return {"SQuAD EM": results["exact_match"]["mean"], "SQuAD F1": results["f1"]["mean"]}


def _blimp(results):
    return {"BLiMP": 100 * results["overall"]["accuracy"]}
