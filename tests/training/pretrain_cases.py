"""Tiny runs of `training.pretrain`, in this process and in others, and what they leave."""

import pathlib
import re

import commands
import numpy as np
import prepare_cases
from interpreters import clusters
from safetensors.numpy import load_file

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeMaskedLMPreprocessor, TupeTokenizer

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
RUNS = {  # of each kind of objective
    "masked_lm": KEPT,
    "causal_lm": {"position": "t5", "dropout": 0.0},
    # all held-out batches, the last one filled up with padding
    "seq2seq": {"mean_span": 2.0, "dropout": 0.0, "steps": 12, "valid_batches": "none"},
    "replaced_token": {
        "generator_share": 0.5,
        "dropout": 0.0,
        "embedding_dim": 24,
        "num_groups": 1,
    },
}
RUNS = {name: {"objective": name, **options} for name, options in RUNS.items()}
# before a checkpoint is whole
DURING_A_SAVE = ("os.rename", r"\.unfinished-step_0000000012\.safetensors", 1)


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


def save_preset(folder, pieces, **kwargs):
    """Saves a new model of a vocabulary, for rows of 9 tokens; returns the folder."""
    backbone = TupeBackbone(len(pieces), 1, 2, 8, 16, position="absolute", max_sequence_length=9)
    preprocessor = TupeMaskedLMPreprocessor(TupeTokenizer(pieces), sequence_length=9)
    TupeMaskedLM(backbone, preprocessor=preprocessor, **kwargs).save_to_preset(str(folder))
    return folder


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


def assert_whole_files(out):
    """No file that has its name is broken, whatever was killed."""
    for step in steps(out):
        assert len(state(out, step)) > 50
    for path in (out / "log.csv", out / "valid.csv"):
        if path.exists():
            assert len({line.count(",") for line in path.read_text().splitlines()}) == 1


def losses(logits, labels):
    """The cross-entropy of each label, by NumPy in float64."""
    logits = logits - logits.max(axis=-1, keepdims=True)
    chosen = np.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return np.log(np.exp(logits).sum(axis=-1)) - chosen


def has_row(out, step):
    """Whether the log has the row of a step."""
    path = out / "log.csv"
    return path.exists() and f"\n{step}," in path.read_text()


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


def two_workers(rows, out, changes=({}, {}), **options):
    """Starts two workers of one run; their logs are beside its folder."""
    each = enumerate(zip(clusters(), changes, strict=True))
    return [
        start(rows, out, environment=one, log=f"{out}.{index}.log", **options, **change)
        for index, (one, change) in each
    ]
