"""Pairs of digits to copy, tiny presets of a model of pairs, and the command on them."""

import json
import random

import commands
import keras

from keras_tupe import TupeTokenizer
from keras_tupe.models import TupeSeq2SeqBackbone, TupeSeq2SeqLM, TupeSeq2SeqLMPreprocessor

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"0123456789", ".", "##1"]
LENGTH = 12  # of both rows
OPTIONS = {
    **dict.fromkeys(("length", "target_length"), LENGTH),
    "batch_size": 16,
    "steps": 12,
    "valid_every": 6,
    "strategy": "one",
}


def write_pairs(path, number, seed=0, most=8):
    """Writes pairs of equal digits, 3 to `most`, written apart; returns the path."""
    rng = random.Random(seed)
    texts = (" ".join(rng.choices("0123456789", k=rng.randint(3, most))) for _ in range(number))
    path.write_text("".join(f"{text}\t{text}\n" for text in texts), encoding="utf-8")
    return path


def model(**options):
    """Returns a new, tiny model of pairs with a preprocessor."""
    keras.utils.set_random_seed(0)
    options = {"position": "rope", "initializer_range": 0.5, **options}
    options = {"max_sequence_length": LENGTH, "dropout": 0.0, **options}
    backbone = TupeSeq2SeqBackbone(len(WORDS), 1, 2, 8, 16, **options)
    text = TupeSeq2SeqLMPreprocessor(TupeTokenizer(WORDS, lowercase=False), LENGTH, LENGTH)
    return TupeSeq2SeqLM(backbone, text)


def save_preset(folder, **options):
    """Writes a preset of `model`; returns the folder."""
    model(**options).save_to_preset(str(folder))
    return folder


def arguments(*preset, **options):
    """Returns a command line: `OPTIONS` with changes; `None` leaves one out."""
    return commands.words_of(*preset, **{**OPTIONS, **options})


def run(*preset, out, **options):
    """Runs in this process; returns `study.json`, and what was printed to both streams."""
    ended = commands.run("finetune seq2seq", *arguments(*preset, out=out, **options))
    assert ended.code == 0, ended.err
    return read(out / "study.json"), ended.out, ended.err


def failure(*preset, out, **options):
    """Runs in vain; returns the sentences, after a check that no run was left behind."""
    words = arguments(*preset, out=out, **options)
    message = commands.refusal("finetune seq2seq", *words)
    assert not list(out.glob("seed-*"))
    return message


def lines(path):
    """Returns the lines of a file of predictions, lists of columns."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def read(path):
    """Returns the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
