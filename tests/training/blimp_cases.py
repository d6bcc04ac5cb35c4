"""Minimal pairs written by hand, and a model whose answers can be computed by hand."""

import json

import commands
import numpy as np

from keras_tupe import (
    TupeBackbone,
    TupeMaskedLM,
    TupeMaskedLMPreprocessor,
    TupeTokenizer,
)

# how much likelier than others each piece is, whatever stands around it (log of the odds)
ODDS = {
    "[PAD]": 0.0, "[UNK]": 0.0, "[CLS]": 0.0, "[SEP]": 0.0, "[MASK]": 0.0,
    "the": 3.0, "cat": 2.0, "##s": -1.0, "dog": 1.5, "sat": 1.0, "sit": 0.5, "on": -3.0, ".": 2.5,
}  # fmt: skip
LONGEST = 8
PARADIGMS = {
    # right; wrong; equal for a vocabulary without capitals; right, and the bad one is longer
    ("agreement", "morphology", "subject_verb_agreement"): [
        ("The cat sat.", "The cat sit."),
        ("The dog sit.", "The dog sat."),
        ("The Cat sat.", "The cat sat."),
        ("The cat sat.", "The cat sats."),
    ],
    ("island", "syntax/semantics", "island_effects"): [("The cat.", "On.")],
    ("wh_island", "syntax_semantics", "island_effects"): [
        ("The dog sat.", "The cat sat."),
        ("The cat sat.", "The dog sat."),
    ],
}


def log_probability(*pieces):
    """The score of a sentence of these pieces."""
    total = np.log(np.sum(np.exp(list(ODDS.values()))))
    return sum(ODDS[piece] - total for piece in pieces)


def write_pairs(folder, paradigms=PARADIGMS):
    """Writes a file for each paradigm; returns the folder."""
    folder.mkdir(exist_ok=True)
    for (uid, field, term), pairs in paradigms.items():
        known = {"UID": uid, "field": field, "linguistics_term": term}
        lines = [
            json.dumps({**known, "sentence_good": good, "sentence_bad": bad}) for good, bad in pairs
        ]
        (folder / f"{uid}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def make_model(**kwargs):
    """Returns a small masked language model over the pieces of `ODDS`."""
    options = {"position": "absolute", "max_sequence_length": LONGEST, **kwargs}
    return TupeMaskedLM(TupeBackbone(len(ODDS), 1, 2, 6, 11, **options))


def save_preset(folder, odds=ODDS):
    """Writes a preset that knows odds of pieces and nothing else; returns the folder."""
    model = make_model()
    for weight in model.weights:
        weight.assign(np.zeros(weight.shape))
    model.head.output_bias.assign(list(odds.values()))
    model.preprocessor = TupeMaskedLMPreprocessor(TupeTokenizer(list(ODDS)), LONGEST)
    model.save_to_preset(str(folder))
    return folder


def words(preset, data, out, *more):
    """Returns a command line."""
    return commands.words_of(preset, "--data", data, "--out", out, *more)


def run(preset, data, out, *more):
    """Runs the command; returns what it wrote in `study.json`, and what it printed and told."""
    ended = commands.run("evaluate blimp", *words(preset, data, out, *more))
    assert ended.code == 0, ended.err
    return json.loads((out / "study.json").read_text()), ended


def failure(preset, data, out, *more):
    """Runs in vain; returns the sentences."""
    return commands.refusal("evaluate blimp", *words(preset, data, out, *more))
