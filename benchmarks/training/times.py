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


def times(answers, peers, baseline):
    """Returns the numbers of every system: medians over rounds, of ratios within a round.

    Args:
        answers: label -> answers of each round, with `wall` and `cpu`.
        peers: labels of the peers; the faster of them in a round is what others are compared with.
        baseline: label of the system that all are compared with too.

    Returns:
        Dictionary, label -> `ms`, `ratio`, `ratio_quartiles` and `cpu_ratio` to the faster peer,
        `baseline_ratio` and `baseline_cpu_ratio`; a ratio to nothing is `None`.
    """
    found = {}
    peers = [label for label in peers if label in answers]
    for label, own in answers.items():
        row = {"ms": 1e3 * statistics.median(answer["wall"] for answer in own)}
        for part, name in (("wall", "ratio"), ("cpu", "cpu_ratio")):
            mine = [answer[part] for answer in own]
            rivals = list(zip(*([a[part] for a in answers[peer]] for peer in peers), strict=True))
            to_peer = ratios(mine, [min(rival) for rival in rivals]) if rivals else None
            row[name] = statistics.median(to_peer) if to_peer else None
            if part == "wall":
                row["ratio_quartiles"] = quartiles(to_peer) if to_peer else None
            base = [answer[part] for answer in answers.get(baseline, ())]
            row[f"baseline_{name}"] = statistics.median(ratios(mine, base)) if base else None
        found[label] = row
    return found
