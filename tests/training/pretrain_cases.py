"""Tiny runs of `training.pretrain`, in this process and in others, and what they leave."""

import contextlib
import io
import json
import multiprocessing
import os
import pathlib
import re
import signal
import socket
import time

import keras
import numpy as np
import prepare_cases

from training.pretrain import __main__ as pretrain

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
_EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}


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
    words = ["--data", str(rows), "--out", str(out)]
    for name, value in {**OPTIONS, **options}.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            values = value if isinstance(value, (list, tuple)) else [value]
            words += [f"--{option}", *map(str, values)]
    return words


@contextlib.contextmanager
def restored():
    """What a run sets for its process is as before: precision, SIGTERM, random numbers."""
    policy, handler = keras.config.dtype_policy(), signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)
        keras.utils.clear_session(free_memory=False)
        assert signal.getsignal(signal.SIGTERM) is handler


def run(rows, out, **options):
    """Runs in this process; returns what was printed to both streams."""
    printed, told = io.StringIO(), io.StringIO()
    with restored(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        pretrain.main(arguments(rows, out, **options))
    return printed.getvalue(), told.getvalue()


def failure(rows, out, **options):
    """Runs in vain; returns the sentences, after a check that nothing was changed."""
    before = files(out)
    printed, told = io.StringIO(), io.StringIO()
    with restored(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        try:
            pretrain.main(arguments(rows, out, **options))
        except SystemExit as stop:
            code = stop.code
        else:
            raise AssertionError(f"it did not stop: {printed.getvalue()}")
    assert files(out) == before
    if code == 2:
        return told.getvalue().strip()
    assert isinstance(code, str)
    assert code.startswith("pretrain: ")
    assert "\n" not in code
    return code


# === What a run leaves ===


def files(folder):
    """The content of all files by name, and `None` for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in pathlib.Path(folder).rglob("*")
    }


def steps(out):
    """Steps of the checkpoints that are there."""
    return sorted(int(path.name[5:]) for path in (out / "checkpoints").glob("step_*"))


def checkpoint(out, step):
    """The folder of a checkpoint."""
    return out / "checkpoints" / f"step_{step:010d}"


def state(out, step):
    """The arrays of a checkpoint, by name."""
    with np.load(checkpoint(out, step) / "state.npz") as archive:
        return dict(archive)


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


def processes():
    """Real processes that need not import TensorFlow anew: each is forked by one that has it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["training.pretrain", "keras_hub", "tensorflow_text"])
    return context


def _alone(words, log, environment, moment):
    """What the other process does.

    Args:
        words: the command line.
        log: file for both streams.
        environment: variables to set.
        moment: `(event, pattern, count)`: kills itself before a file operation, an audit event of
            Python such as `"os.rename"`, on a path that has the pattern, when it comes so often.
    """
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.environ |= environment
    left = [moment[2] if moment else 0]

    def kill_at_the_moment(event, values):
        if event == moment[0] and event in _EVENTS and re.search(moment[1], str(values[0])):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    if moment:
        import sys

        sys.addaudithook(kill_at_the_moment)
    pretrain.main(words)


def start(context, rows, out, moment=None, environment=None, log=None, **options):
    """Starts a run in another process; see `_alone`. Both streams go to `OUT.log`."""
    words = arguments(rows, out, **options)
    log = f"{out}.log" if log is None else str(log)
    process = context.Process(
        target=_alone, args=(words, log, environment or {}, moment), daemon=True
    )
    process.start()
    return process


def log_of(out):
    """What processes told."""
    return pathlib.Path(f"{out}.log").read_text(errors="replace")


def wait_until(condition, process, seconds=120):
    """Waits while a process lives; returns whether the condition came true."""
    end = time.monotonic() + seconds
    while process.is_alive() and time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.001)
    return bool(condition())


def ended(process, seconds=300):
    """Waits for the end of a process; returns its exit code."""
    process.join(seconds)
    assert process.exitcode is not None, "it does not end"
    return process.exitcode


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
