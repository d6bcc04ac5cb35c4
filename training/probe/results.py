"""The numbers of a probe, from those of its runs: scores, ceilings, and what is above one."""

from keras_tupe import positions
from keras_tupe.metrics import mean_interval
from training.probe.ceilings import KINDS, NOWHERE, TRAINED, ceiling
from training.probe.run import cell_name

_SURE = 0.999  # of the interval whose lower end must not be above a ceiling of a mean
_FEW = 3  # seeds that may agree by chance


def ceilings(tests, trained_length):
    """Returns what methods can score at most, in percent: kind -> task -> length, as a text.

    Args:
        tests: dictionary: (task, length) -> `AskedRows`.
        trained_length: tokens of the longest row of training.
    """
    found = {kind: {} for kind in KINDS}
    for kind in KINDS:
        for (task, length), rows in tests.items():
            share = ceiling(rows, kind, trained_length)
            found[kind].setdefault(task, {})[str(length)] = 100 * share
    return found


def method_results(variant, seeds, metrics):
    """Returns what the runs of one method found.

    Args:
        variant: its `Variant`.
        seeds: number of runs.
        metrics: dictionary: name of each run -> its metrics.
    """
    runs = [metrics[cell_name(variant, seed)] for seed in range(seeds)]
    scores = {
        task: {
            length: _summary([run["scores"][task][length] for run in runs]) for length in of_task
        }
        for task, of_task in runs[0]["scores"].items()
    }
    return {
        "parameters": runs[0]["parameters"],
        "sees_order": positions.get(variant.position).sees_order,
        # of runs that were found to know order otherwise, what bounds all of them
        "order": max((run["order"] for run in runs), key=KINDS.index),
        "scores": scores,
        "train_seconds": [run["train_seconds"] for run in runs],
        "seconds": [run["seconds"] for run in runs],
    }


def violations(methods, bounds):
    """Returns a sentence for each score that cannot be.

    Args:
        methods: dictionary: label -> what `method_results` returned.
        bounds: what `ceilings` returned.
    """
    found = []
    for label, method in methods.items():
        kind = method["order"]
        if not method["sees_order"] and kind != NOWHERE:
            found.append(
                f"{label} must not see the order of tokens, as its record says, and its answers "
                "change with it."
            )
        for task, scores in method["scores"].items():
            for length, score in scores.items():
                most = bounds[kind][task][length]
                reached = _reached(kind, score["values"])
                if reached is not None and reached > most + 1e-9:
                    found.append(
                        f"{label} cannot score above {most:.2f} % in {task} at {length} tokens, "
                        f"since it knows order {kind}, and scored {reached:.2f} %."
                    )
    return found


def _reached(kind, values):
    """Returns what must not be above the ceiling, if anything is known of it.

    The best run, or of a mean over random rows the lower end of its interval.
    """
    if kind == NOWHERE:
        return max(values)
    if kind == TRAINED and (len(set(values)) > 1 or len(values) > _FEW):
        return mean_interval(values, level=_SURE)[1]
    return None


def _summary(values):
    mean, low, high = mean_interval(values)
    return {"values": values, "mean": mean, "low": low, "high": high}
