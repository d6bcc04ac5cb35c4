"""Tiny runs of `training.pretrain`, in this process and in others, and what they leave."""

import contextlib
import json
import pathlib
import re
import socket

import commands
import prepare_cases
from safetensors.numpy import load_file

from keras_tupe.trainer import Checkpoints

LENGTH = 16
# plain TensorFlow starts sooner than XLA; nothing here depends on the peak
OPTIONS = {
    "size": "tiny",
    "batch_size": 8,
    "steps": 24,
    "warmup_steps": 2,
    "learning_rate": 1e-3,
    "save_every": 6,
    "valid_every": 12,
    "valid_batches": 2,
    "log_every": 4,  # not where it is saved
    "seed": 3,
    "xla": "off",
    "peak_flops": 1e12,
    "tensorboard": False,
}


KEPT = {"keep_steps": "10"}  # of the run that tests share


def make_rows(folder, number=41, vocabulary_size=160, more=()):
    """Prepares rows of 16 tokens in a new folder; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = prepare_cases.documents(number=number)
    source = prepare_cases.write_text(folder / "corpus.txt", texts)
    size = () if "--vocabulary" in more else ("--vocabulary-size", vocabulary_size)
    options = ("--length", LENGTH, "--valid", 0.2, *size)
    return prepare_cases.run(folder / "rows", source, options=map(str, options), more=more)


def arguments(rows, out, **options):
    """Returns a command line: `OPTIONS` with changes; `None` leaves one out."""
    return commands.words_of(data=rows, out=out, **{**OPTIONS, **options})


def run(rows, out, **options):
    """Runs in this process; returns what was printed to both streams."""
    ended = _attempt(rows, out, **options)
    assert ended.code == 0, ended.err
    return ended.out, ended.err


def stopped(rows, out, **options):
    """Runs to an end with a sentence, which is returned."""
    ended = _attempt(rows, out, **options)
    assert ended.said, ended
    assert "\n" not in ended.said
    assert ended.said.startswith("pretrain: ")
    return ended.said


def failure(rows, out, **options):
    """Runs in vain; returns the sentences, after a check that nothing was changed."""
    before = files(out)
    message = commands.refusal("pretrain", *arguments(rows, out, **options))
    assert files(out) == before
    return message


def _attempt(rows, out, **options):
    """Runs in this process to any end."""
    ended = commands.run("pretrain", *arguments(rows, out, **options))
    assert ended.signals, "SIGTERM is not handled as before"
    return ended


# === What a run leaves ===


def files(folder):
    """The content of all files by name, and `None` for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in pathlib.Path(folder).rglob("*")
    }


def steps(out):
    """Steps of the checkpoints that are there."""
    return sorted(int(path.stem[5:]) for path in (out / "checkpoints").glob("step_*"))


def checkpoint(out, step):
    """The file of a checkpoint."""
    return out / "checkpoints" / f"step_{step:010d}.safetensors"


def state(out, step):
    """The arrays of a checkpoint, by name."""
    return load_file(checkpoint(out, step))


def facts(out, step):
    """What a checkpoint says about itself."""
    return Checkpoints(out / "checkpoints").read_facts(step)


def assert_same_state(ours, theirs, step):
    """Two runs have the same weights, optimizer, seeds and counters at a step, bit for bit."""
    ours, theirs = state(ours, step), state(theirs, step)
    assert list(ours) == list(theirs)
    assert any(name.startswith("optimizer/") for name in ours)
    different = [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()]
    assert not different, different


def table(path, *columns):
    """Columns of a log, as they were written."""
    header, *lines = [line.split(",") for line in path.read_text().splitlines()]
    places = [header.index(name) for name in columns]
    return [tuple(line[place] for place in places) for line in lines]


def assert_same_run(ours, theirs, last, checkpoints=True):
    """A run is at its end what another is: state, logs, preset; and there is nothing else.

    Without `checkpoints` those of other steps may be there.
    """
    assert_same_state(ours, theirs, last)
    columns = ("step", "loss", "learning_rate", "gradient_norm", "skipped_steps")
    assert table(ours / "log.csv", *columns) == table(theirs / "log.csv", *columns)
    columns = ("step", "tokens", "valid_loss", "valid_accuracy")
    assert table(ours / "valid.csv", *columns) == table(theirs / "valid.csv", *columns)
    pattern = "" if checkpoints else r"checkpoints/step_"
    names = [
        {x for x in files(out) if not pattern or not re.match(pattern, x)} for out in (ours, theirs)
    ]
    assert names[0] == names[1]
    for name in ("config.json", "assets/tokenizer/vocabulary.txt"):
        assert (ours / "preset" / name).read_bytes() == (theirs / "preset" / name).read_bytes()


# === Other processes ===


def start(rows, out, log=None, environment=None, moment=None, **options):
    """Starts a run in another process; both streams go to `OUT.log`. See `commands.start`."""
    words = arguments(rows, out, **options)
    return commands.start("pretrain", words, log or f"{out}.log", environment, moment)


def clusters(number=2):
    """Returns the environment of each worker of a cluster on free ports of this machine."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        workers = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            )
        }
        for index in range(number)
    ]
