"""Logs of runs, made up, and the tables and pictures that are made of them."""

import json

import numpy as np
from matplotlib.image import imread

from training.command.log import LOG_COLUMNS, RunLog
from training.pretrain.settings import Settings

SIZES = {"num_layers": 2, "num_heads": 4, "hidden_dim": 128, "intermediate_dim": 512}
SIZES |= {"vocabulary_size": 160}


def make_run(folder, steps=300, shift=0.0, valid_every=20, speed=1000.0, share=0.25, outputs=()):
    """Writes the logs of a run whose loss falls from 9 + shift; returns the folder."""
    with RunLog(folder, 0, tensorboard=False, outputs=outputs) as log:
        for step in range(10, steps + 1, 10):
            loss = 3 + shift + 6 * np.exp(-step / 60)
            known = {"step": step, "loss": loss + 0.2 * (-1) ** (step // 10), "seconds": step / 2}
            factor = 5 if step == 10 else 1  # the first line of a log may be of any speed
            known |= {"tokens_per_second": factor * speed, "flop_utilisation": factor * share}
            known |= {"skipped_steps": 0}
            log.train(**{**dict.fromkeys(LOG_COLUMNS, 1.0), **known})
            if valid_every and step % valid_every == 0:
                parts = {f"{name}_loss": loss / 2 for name in outputs}
                parts |= {f"{name}_accuracy": 0.5 for name in outputs}
                known = {"valid_loss": loss, "valid_accuracy": 1 / loss, **parts}
                log.valid(step=step, tokens=4096 * step, **known)
    return folder


def make_ended_run(folder, position, seed, shift=0.0, finished=True, **changes):
    """Writes what a run of 300 steps of `training.pretrain` leaves; returns the folder."""
    make_run(folder, 300, shift)
    settings = {"position": position, "seed": seed, "steps": 300, "warmup_steps": 9, **changes}
    settings = {**vars(Settings(**settings)), "out": str(folder)}
    settings.pop("given")
    record = {
        "command": f"python -m training.pretrain --position {position}",
        "commit": "0123abc",
        "settings": settings,
        "data": {"rows_hash": "abc", "length": 16},
        "backend": "tensorflow",
    }
    (folder / "settings.json").write_text(json.dumps(record))
    if finished:
        (folder / "preset").mkdir()
        (folder / "preset" / "config.json").write_text(json.dumps({"config": SIZES}))
        count = {"parameter_count": 1000 + len(position)}
        (folder / "preset" / "metadata.json").write_text(json.dumps(count))
    return folder


def cells(text):
    """Returns the rows of a Markdown table."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def picture(path):
    """Returns a picture as integers `(height, width, 3)`, after a look that it is not blank."""
    image = (imread(path)[..., :3] * 255).round().astype("int32")
    assert min(image.shape[:2]) > 200
    assert num_colors(image) > 30
    return image


def num_colors(image):
    """Returns how many colors a picture of integers `(height, width, 3)` has."""
    seen = np.zeros(2**24, bool)
    seen[image @ np.array([2**16, 2**8, 1], "int32")] = True
    return seen.sum()
