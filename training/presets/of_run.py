"""Where the presets of a run of `training.pretrain` are, and which run a preset is of."""

import pathlib
import re

LAST, FOLDER = "preset", "presets"


def preset_at(run, step=None):
    """Returns the folder of a run's preset after a step, a `pathlib.Path`; `None` for the last."""
    run = pathlib.Path(run)
    return run / LAST if step is None else run / FOLDER / f"step-{step}"


def run_of_preset(folder):
    """Returns the folder of the run that a preset may be of, and its step; `None` for neither.

    The step of the last one is not in its name, and `None`.
    """
    folder = pathlib.Path(folder)
    if folder.name == LAST:
        return folder.parent, None
    found = re.fullmatch(r"step-(\d+)", folder.name)
    if found is None or folder.parent.name != FOLDER:
        return None, None
    return folder.parent.parent, int(found[1])
