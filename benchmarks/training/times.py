"""Interleaved rounds over processes, and what is made of the times."""

import statistics

from benchmarks.harness.process import ChildError
from benchmarks.harness.rounds import quartiles, ratios, turns


def measure(workers, rounds, tick):
    """Asks every process for a step, in turn; every other round in reverse order.

    Args:
        workers: dictionary, label -> process with `ask`. One that fails is left out from there
            on.
        rounds: number of rounds that count; one before does not.
        tick: function without arguments, called after each step.

    Returns:
        `(answers, failures)`: label -> list of the answers of all rounds, and label -> error of
        the processes that failed.
    """
    answers, failures = {label: [] for label in workers}, {}
    for _, label in turns(workers, rounds):
        if label not in failures:
            try:
                answers[label].append(workers[label].ask("step"))
            except ChildError as error:
                failures[label] = error
        tick()
    return {label: found[1:] for label, found in answers.items() if label not in failures}, failures


def times(answers, references):
    """Returns the numbers of every system: medians over rounds, of ratios within a round.

    Args:
        answers: label -> answers of each round, with `wall` and `cpu`.
        references: dictionary: beginning of a name -> labels of the systems to compare with: with
            the fastest of them in each round, and with the one that took the least processor time.

    Returns:
        Dictionary, label -> `ms` and `cpu_ms`, and of each reference, behind the beginning of its
        name, `ratio`, `ratio_quartiles` and `cpu_ratio`; a ratio to nothing is `None`.
    """
    found = {}
    for label, own in answers.items():
        row = {}
        for part, ms in (("wall", "ms"), ("cpu", "cpu_ms")):
            row[ms] = 1e3 * statistics.median(answer[part] for answer in own)
        for beginning, labels in references.items():
            others = [answers[other] for other in labels if other in answers]
            for part, name in (("wall", "ratio"), ("cpu", "cpu_ratio")):
                rivals = list(zip(*([a[part] for a in other] for other in others), strict=True))
                mine = [answer[part] for answer in own]
                to_best = ratios(mine, [min(rival) for rival in rivals]) if rivals else None
                row[f"{beginning}{name}"] = statistics.median(to_best) if to_best else None
                if part == "wall":
                    row[f"{beginning}ratio_quartiles"] = quartiles(to_best) if to_best else None
        found[label] = row
    return found
