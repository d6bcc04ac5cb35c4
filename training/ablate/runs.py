"""The runs of an ablation: where they are, which are finished, and that they belong together."""

import dataclasses
import json
import os
import pathlib
import shutil

from keras_tupe._json_file import parse_json, read_json_object
from training.command.kinds import kind_of
from training.command.log import LOG, read_log
from training.command.variant import Variant
from training.pretrain import settings as pretrain_settings

RUNS = "runs"
SETTINGS = "settings.json"
# Facts that are each run's own; all others must be equal in the runs of one ablation.
_OWN = ("position", "position_options", "seed")


@dataclasses.dataclass(frozen=True)
class FoundRun:
    """A run of `training.pretrain` that was begun.

    Attributes:
        folder: its `pathlib.Path`.
        variant: its `Variant`.
        seed: its seed.
        record: the content of its `settings.json`.
    """

    folder: pathlib.Path
    variant: Variant
    seed: int
    record: dict

    @property
    def is_finished(self):
        """Whether it is trained to its end."""
        return is_finished(self.folder)

    def facts(self):
        """Returns what must be equal in all runs of one ablation, JSON values.

        These are the settings that change what is learned, how often it is validated, the rows
        and the backend.
        """
        settings = pretrain_settings.Settings(**self.record["settings"])
        return facts_of(settings, self.record["data"], self.record["backend"])


def facts_of(settings, data, backend):
    """Returns what must be equal in all runs of one ablation, for a run that is not begun yet.

    Args:
        settings: a `Settings` of `training.pretrain`.
        data: dictionary that tells the rows apart, as in the record of a run.
        backend: name of Keras's backend.
    """
    # whatever the method, as its own settings are compared apart
    settings = dataclasses.replace(
        settings, position="none", position_options="{}", position_file=None
    )
    identity = {k: v for k, v in settings.identity().items() if k not in _OWN}
    identity.pop("position_file", None)
    facts = {**identity, "valid_every": settings.valid_every, "backend": backend, **data}
    return json.loads(json.dumps(facts))


def run_folder(out, variant, seed):
    """Returns the folder of a run, the `--out` of `training.pretrain`: a `pathlib.Path`."""
    return pathlib.Path(out) / RUNS / variant.folder / f"seed-{seed}"


def is_finished(folder):
    """Returns whether the run in a folder is trained to its end."""
    return (pathlib.Path(folder) / "preset" / "config.json").is_file()


def remove_checkpoints(folder):
    """Removes the checkpoints of a finished run: the preset has what is needed of them."""
    if is_finished(folder):
        shutil.rmtree(pathlib.Path(folder) / "checkpoints", ignore_errors=True)


def recorded_seconds(folder):
    """Returns the seconds that a finished run took, and those of its tests, as they wrote."""
    folder = pathlib.Path(folder)
    training = (read_log(folder / LOG)["seconds"] or [0.0])[-1]
    found = [*folder.glob("*/results.json"), *folder.glob("*/step-*/*/results.json")]
    return training, sum(map(_seconds, found))


def _seconds(path):
    """Returns the seconds that results tell, 0 if they tell none; others say what is wrong."""
    try:
        return float(read_json_object(path)["seconds"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return 0.0


def keep_method_file(out, variant):
    """Puts a copy of the file that defines a variant's method beside its runs.

    Raises:
        ValueError: if there is one already, of other content.
    """
    if variant.file is None:
        return
    content = pathlib.Path(variant.file).read_bytes()
    copy = pathlib.Path(out) / RUNS / variant.folder / "method.py"
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = copy.with_name(".partial.method.py")
        partial.write_bytes(content)
        partial.replace(copy)
    elif copy.read_bytes() != content:
        raise ValueError(
            "The file of a method must not change between the runs of an ablation. Give it another "
            f"name, or give another --out. Received: {variant.file!r} unlike {str(copy)!r}"
        )


def find_runs(out):
    """Returns the `FoundRun` of every run in the folder of an ablation, by name and seed.

    Raises:
        ValueError: if the record of a run cannot be read.
    """
    found = []
    for path in pathlib.Path(out).glob(f"{RUNS}/*/seed-*/{SETTINGS}"):
        folder = path.parent
        try:
            record = read_json_object(path)
            _check_kinds(record["settings"])
            if not all(isinstance(record.get(name), str | None) for name in ("command", "commit")):
                raise ValueError("its command and its commit must be texts")
            run = FoundRun(folder, _variant(record["settings"]), record["settings"]["seed"], record)
            run.facts()
            if f"seed-{run.seed}" != folder.name:
                raise ValueError(f"its seed is {run.seed}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{RUNS}/ must hold runs of training.pretrain, each in METHOD/seed-K. Move "
                f"the rest away. Received: {str(folder)!r} ({type(error).__name__}: {error})"
            ) from None
        found.append(run)
    return sorted(found, key=lambda run: (run.variant.folder, run.seed))


def check_belongs(out, found, facts, variants=()):
    """Checks that runs are of one ablation.

    Args:
        out: folder of the ablation, for the message.
        found: list of `FoundRun`.
        facts: what `FoundRun.facts` must be.
        variants: the `Variant`s of a new ablation, each of which has its own folder.

    Raises:
        ValueError: naming the settings in which a run differs.
    """
    wanted = {variant.folder: variant for variant in variants}
    for run in found:
        differing = differences(run.facts(), facts)
        variant = wanted.get(run.folder.parent.name)
        if variant is not None and (variant.position, variant.resolved()) != (
            run.variant.position,
            run.variant.resolved(),
        ):
            differing.append(f"method: {run.variant.label} there, {variant.label} here")
        if differing:
            name = os.path.relpath(run.folder, pathlib.Path(out) / RUNS)
            raise ValueError(
                "The folder holds runs of another ablation. Give another --out, or the settings "
                f"of the runs that are there; methods and seeds may be added. Received: {name} "
                f"differs in {'; '.join(differing)}"
            )


def differences(theirs, ours):
    """Returns a phrase for every entry in which two dictionaries of facts differ."""
    return [
        f"{name} {theirs.get(name)!r} there, {ours.get(name)!r} here"
        for name in sorted({*theirs, *ours})
        if theirs.get(name) != ours.get(name)
    ]


def _variant(settings):
    """Returns the variant of a run, from the settings in its record."""
    file = settings["position_file"]
    name = pathlib.Path(file).stem if file else settings["position"]
    options = parse_json(settings["position_options"])
    if not isinstance(options, dict):
        raise ValueError("its position_options must be a dictionary")
    return Variant(name, options, file)


def _check_kinds(settings):
    """Checks that the settings in a record are of the kinds that they were written with.

    Raises:
        ValueError: naming the first that is not.
    """
    for field in dataclasses.fields(pretrain_settings.Settings):
        if "help" in field.metadata and settings.get(field.name) is not None:
            try:
                kind_of(field).from_toml(settings[field.name])
            except ValueError:
                raise ValueError(f"its {field.name} is not {kind_of(field)}") from None
