"""Studies of finished runs that are made up: what their commands leave, and `run.json`."""

import functools
import json

import commands

from keras_tupe.data.rows.json_record import write_sealed_json
from training.command.variant import parse
from training.pretrain.settings import Settings
from training.studies.ablation.tasks import Task
from training.studies.ablation.work import facts_of, found_by
from training.study.folder import FORMAT
from training.study.methods import method_identity

MACHINE = {"cpu": "a processor", "cores": 2, "gpu": None, "backend": "tensorflow"}


def finish(out, objectives=False, machine=MACHINE):
    """Makes a study of the runs in `OUT/METHOD/seed-K/pretrain`, and of tasks beside them.

    Args:
        out: the folder; with `objectives` the methods are in `OUT/OBJECTIVE/`.
        objectives: whether there are several.
        machine: of all runs.
    """
    for path in out.rglob("pretrain/settings.json"):
        record = json.loads(path.read_text())
        run = Settings(**record["settings"])
        options = "".join(f":{key}={json.dumps(x)}" for key, x in run.method_options().items())
        variant = parse(f"{run.position}{options}")
        place = {"position": variant.label, "seed": run.seed}
        place |= {"objective": run.objective} if objectives else {}
        _write(
            path.parent,
            f"pretrain {run.objective if objectives else ''}".strip(),
            place,
            facts_of(run, record["data"], record["backend"]),
            {**method_identity(variant), "seed": run.seed},
            found_by(path.parent, variant.label),
            machine,
        )
        for results in path.parents[1].rglob("study.json"):
            step = results.parents[1].name.partition("step-")[2]
            found = {"seconds": 0.0, **Task(results.parent.name, None).read(results.parent)}
            kind, at = f"task {results.parent.name}", int(step) if step else None
            _write(results.parent, kind, {**place, "step": at}, {}, {}, found, machine)
    name = "ablation of objectives" if objectives else "ablation"
    (out / "study.json").write_text(json.dumps({"format": FORMAT, "study": name}))
    return out


def _write(folder, kind, place, shared, own, found, machine):
    record = {"format": FORMAT, "name": str(folder), "kind": kind, "place": place}
    record |= {"shared": shared, "own": own, "found": found}
    record |= {"origin": {"commit": "0123abc", "machine": machine}}
    write_sealed_json(folder / "run.json", record)


report_only = functools.partial(commands.done, "study", "ablation", "--report-only", "--out")


def report(out, *more):
    """Writes the report of a folder; returns its record."""
    report_only(out, *more)
    return json.loads((out / "study.json").read_text())
