"""All measurements of a run, each in a process of its own, one after the other."""

import dataclasses

from tqdm import tqdm

from benchmarks import _cases, _child, _peak, _peer_environment
from keras_tupe import SIZES

PEER_KINDS = ("absolute", "relative_key", "relative_key_query")  # the baseline first


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

    Returns:
        A dictionary: `rows`, in the order of the table; `environment` and `peer_environment`,
        the versions of what computed; `peer_left_out`, why there are no rows of the peer, or
        `None`; `problems`, a sentence for each measurement that failed.
    """
    found = {
        "rows": [],
        "environment": None,
        "peer_environment": None,
        "peer_left_out": None if settings.peer else "--no-peer was given",
        "problems": [],
    }
    python = None
    if settings.peer:
        python, found["peer_left_out"] = _peer_environment.ensure(settings.peer_environment)
    for length in settings.lengths:
        job = {
            "length": length,
            "batch_size": max(1, settings.tokens // length),
            "rounds": settings.rounds,
            "files": settings.files,
            "sizes": dataclasses.asdict(SIZES[settings.size]),
        }
        _add_methods(found, settings, job)
        if python is not None:
            _add_peer(found, settings, job, python)
    return found


def _add_methods(found, settings, job):
    cases = _cases.cases_for(settings.positions, job["length"])
    labels = [case.label for case in cases]
    entries = [dataclasses.asdict(case) for case in cases]
    memory_jobs = [{**job, "cases": [entry]} for entry in entries]
    names = ("benchmarks._times", "benchmarks._memory")
    rows, facts = _measure(
        found, settings, names, labels, {**job, "cases": entries}, memory_jobs, "keras_tupe"
    )
    found["environment"] = facts or found["environment"]
    for row, entry in zip(rows, entries, strict=True):
        found["rows"].append({**row, **entry})


def _add_peer(found, settings, job, python):
    job = {
        **job,
        "kinds": PEER_KINDS,
        "vocabulary_size": _cases.VOCABULARY_SIZE,
        "learning_rate": _cases.LEARNING_RATE,
        "memory": False,
    }
    memory_jobs = [{**job, "kinds": [kind], "memory": True} for kind in PEER_KINDS]
    names = ("benchmarks._peer", "benchmarks._peer")
    rows, facts = _measure(
        found, settings, names, PEER_KINDS, job, memory_jobs, "transformers", python=python
    )
    found["peer_environment"] = facts or found["peer_environment"]
    found["rows"] += rows


def _measure(found, settings, names, labels, job, memory_jobs, by, **kwargs):
    """Returns a row for each label, and what the process that timed them says about itself."""
    length = job["length"]

    def attempt(what, module, one_job, tick):
        try:
            return _child.run(module, one_job, tick, **kwargs)
        except _child.ChildError as error:
            found["problems"].append(f"{by}, n = {length}, {what}: {error}")
            return None

    facts = None
    if settings.times:
        total = len(labels) * (1 + settings.rounds + 1)  # built, counted rounds, one uncounted
        with tqdm(total=total, desc=f"{by}, n = {length}, times", unit="turn") as bar:
            facts = attempt("times", names[0], job, bar.update)
    facts = facts or {"rows": [{} for _ in labels]}
    rows = facts.pop("rows")
    common = {"by": by, "length": length, "batch_size": job["batch_size"]}
    rows = [{**common, "label": name, **row} for name, row in zip(labels, rows, strict=True)]
    if settings.memory:
        with tqdm(total=len(labels), desc=f"{by}, n = {length}, memory", unit="model") as bar:
            for row, memory_job in zip(rows, memory_jobs, strict=True):
                what = f"memory of {row['label']}"
                row["peak_memory_mib"] = attempt(what, names[1], memory_job, lambda: None)
                bar.update()
    return rows, facts


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    memory = (
        f"Peak memory: growth of a process's largest memory in {_peak.STEPS} train steps, from "
        f"after a step with a batch of {_peak.SMALL[0]} x {_peak.SMALL[1]} tokens, so that "
        "weights, optimizer state and libraries are not counted."
    )
    times = [
        "Ratios: median over the rounds of the time by that of `absolute` in the same round; of "
        "transformers' rows, by its own `absolute`. CPU: the same of the processor time of all "
        "threads, which tells less of what else the machine did.",
        f"Each of the {settings.rounds} rounds does one train step (AdamW, mse) and one inference "
        "of every method in turn, every other round in reverse order; one round before is not "
        "counted.",
    ]
    return [
        *(times if settings.times else ["Times were not measured: --no-times was given."]),
        memory if settings.memory else "Peak memory was not measured: --no-memory was given.",
        "Parameters: of the timed encoder, without a pooled output.",
    ]
