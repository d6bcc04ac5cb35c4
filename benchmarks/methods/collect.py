"""All measurements of a run, each in a process of its own, one after the other."""

import dataclasses

from tqdm import tqdm

from benchmarks.harness import process
from benchmarks.harness.environments import PEER, folder_of
from benchmarks.methods import cases
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
        python, found["peer_left_out"] = PEER.ensure(folder_of(settings.peer_environment))
    for length in settings.lengths:
        job = {
            "length": length,
            "batch_size": max(1, settings.tokens // length),
            "rounds": settings.rounds,
            "sizes": dataclasses.asdict(SIZES[settings.size]),
        }
        _add_methods(found, settings, job)
        if python is not None:
            _add_peer(found, settings, job, python)
    return found


def _add_methods(found, settings, job):
    entries = [dataclasses.asdict(case) for case in cases.cases_for(settings.names, job["length"])]
    labels = [cases.Case(**entry).label for entry in entries]
    job = {**job, "files": settings.files}
    rows, facts = measure(
        found, settings, job, "keras_tupe", "benchmarks.methods.worker", labels, "cases", entries
    )
    found["environment"] = facts or found["environment"]
    found["rows"] += [{**row, **entry} for row, entry in zip(rows, entries, strict=True)]


def _add_peer(found, settings, job, python):
    job = {
        **job,
        "vocabulary_size": cases.VOCABULARY_SIZE,
        "learning_rate": cases.LEARNING_RATE,
    }
    rows, facts = measure(
        found,
        settings,
        job,
        "transformers",
        "benchmarks.methods.peer",
        PEER_KINDS,
        "kinds",
        PEER_KINDS,
        python=python,
    )
    found["peer_environment"] = facts or found["peer_environment"]
    found["rows"] += rows


def measure(found, settings, job, by, module, labels, key, entries, **kwargs):
    """Times all models of one length in one process, then their memory, in one each.

    Args:
        found: dictionary whose `problems` are added to.
        settings: a `Settings`.
        job: what the processes get.
        by: whose models they are.
        module: dotted name of what the processes run.
        labels: what the table calls the models.
        key: where in the job the models are.
        entries: the models, as the processes get them.
        **kwargs: for `process.run`.

    Returns:
        A row for each label, and what the process that timed them says about itself.
    """
    length = job["length"]

    def attempt(what, tick, **more):
        try:
            return process.run(module, {**job, **more}, tick, **kwargs)
        except process.ChildError as error:
            found["problems"].append(f"{by}, n = {length}, {what}: {error}")
            return None

    facts = None
    if settings.times:
        total = len(labels) * (1 + settings.rounds + 1)  # built, counted rounds, one uncounted
        with tqdm(total=total, desc=f"{by}, n = {length}, times", unit="turn") as bar:
            facts = attempt("times", bar.update, memory=False, **{key: entries})
    facts = facts or {"rows": [{} for _ in labels]}
    rows = facts.pop("rows")
    common = {"by": by, "length": length, "batch_size": job["batch_size"]}
    rows = [{**common, "label": name, **row} for name, row in zip(labels, rows, strict=True)]
    if settings.memory:
        with tqdm(total=len(labels), desc=f"{by}, n = {length}, memory", unit="model") as bar:
            for row, entry in zip(rows, entries, strict=True):
                what = f"memory of {row['label']}"
                row["peak_memory_mib"] = attempt(what, lambda: None, memory=True, **{key: [entry]})
                bar.update()
    return rows, facts
