"""Answers of an export: to the example beside it, and to questions."""

import pathlib
import re
import zipfile

import numpy as np
import tensorflow as tf

from training.query import strings
from training.query.questions import BEGINNINGS, MASKS, fitting

TOLERANCE = 1e-5
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
# what TensorFlow and NumPy raise for files that are not whole
_DAMAGE = (OSError, ValueError, LookupError, RuntimeError, zipfile.BadZipFile, tf.errors.OpError)


def ask(settings):
    """Checks an export and asks it; prints the answers.

    Args:
        settings: a `Settings` without problems.

    Returns:
        The largest difference from the stored outputs, and whether all questions have an answer.

    Raises:
        ValueError: if it cannot be read, or cannot answer such questions.
    """
    try:
        worst = check_example(pathlib.Path(settings.folder))
        return worst, answer(settings) if settings.strings else True
    except _DAMAGE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"{reason} Received: {settings.folder!r}") from error


def check_example(folder):
    """Prints how far the SavedModel is from the stored outputs and returns the difference.

    Of each output the largest difference, relative to its largest value if that is above 1.
    """
    example = _read_example(folder / "example.npz")
    found = _of_pairs(folder, example) if "target" in example else _of_encoder(folder, example)
    differences = [
        float(np.abs(value - example[name]).max() / max(1, np.abs(example[name]).max()))
        for name, value in found
        if example[name].size
    ]
    worst = max(differences, default=0.0) if np.isfinite(differences).all() else np.inf
    print(
        f"parity with the model that was exported: largest relative difference {worst:.1e}",
        flush=True,
    )
    return worst


def _of_pairs(folder, example):
    """Returns the names and answers of a model of pairs: log-probabilities of targets."""
    model = strings.load(folder, "text")
    texts = {name: tf.constant(example[name].astype(bytes)) for name in ("text", "target")}
    answer = model.signatures["score"](**texts)
    return [("log_probability", answer["log_probability"].numpy())]


def _of_encoder(folder, example):
    """Returns the names and answers of an encoder, as far as the example has them."""
    encoder = tf.saved_model.load(str(folder))  # kept: its functions die with it
    found = [encoder({name: tf.constant(example[name]) for name in INPUTS})]
    for signature in encoder.signatures.values():
        specs = signature.structured_input_signature[1]
        if specs.keys() <= example.keys():
            found.append(signature(**{name: tf.constant(example[name]) for name in specs}))
    return [
        (name, value.numpy())
        for answer in found
        for name, value in answer.items()
        if name in example
    ]


def _read_example(path):
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except Exception as error:  # what NumPy and zipfile raise for a damaged file is open
        raise ValueError(f"{path.name} is damaged ({type(error).__name__}: {error}).") from error


def mask_of(model):
    """Returns how the model's vocabulary writes a blank."""
    known = model.signatures["fill_mask"](text=tf.constant(MASKS))["num_masks"].numpy()
    return next((word for word, count in zip(MASKS, known, strict=True) if count), MASKS[0])


def fill_blanks(model, texts):
    """Prints the likeliest pieces for the blank of each text; returns whether all had one."""
    fill, mask = model.signatures["fill_mask"], mask_of(model)
    answers = fill(text=tf.constant(texts))
    counts, length = tokens_of(model, [text.replace(mask, " ") for text in texts])
    has_all = True
    for text, pieces, shares, found, count in zip(
        texts,
        *(answers[key].numpy() for key in ("tokens", "probabilities", "num_masks")),
        counts,
        strict=True,
    ):
        written = text.count(mask)
        has_all = has_all and found > 0
        print(text)
        if found:
            ranked = zip(pieces, shares, strict=True)
            print("    " + ", ".join(f"{piece.decode()} {share:.0%}" for piece, share in ranked))
        elif written:
            print(
                f"    the blank is beyond the {length} tokens that the model reads: leave out some "
                "of the words before it"
            )
        else:
            print(f"    no blank: write {mask} where a word is missing")
        if found and count + written > length:
            print(f"    the model reads {length} tokens: the rest of this text was cut")
    return has_all


def tokens_of(model, texts):
    """Returns how many tokens of each text the model reads, and how many it can read.

    Special tokens are included.
    """
    mask = model.signatures["serving_default"](text=tf.constant(texts))["padding_mask"].numpy()
    return mask.sum(axis=1).tolist(), mask.shape[1]


def rank_sentences(model, texts, candidates):
    """Prints the three sentences of a small set that are nearest to each text."""
    embed = model.signatures["embed"]
    sentences = embed(text=tf.constant(candidates))["embedding"].numpy()
    counts, length = tokens_of(model, texts)
    vectors = embed(text=tf.constant(texts))["embedding"].numpy()
    for text, vector, count in zip(texts, vectors, counts, strict=True):
        cosines = sentences @ vector
        print(f"nearest to: {text}")
        if count == length:
            print(f"    this fills the {length} tokens that the model reads; no more is read")
        for index in np.argsort(-cosines)[:3]:
            print(f"    {cosines[index]:.3f}  {candidates[index]}")


def answer(settings):
    """Answers the questions, or some of its own if there are none; returns whether all could be.

    Raises:
        ValueError: if there is a blank to fill and the model cannot.
    """
    model = strings.load(settings.folder, settings.strings)
    if "generate" in model.signatures:
        return write_on(model, settings)
    if settings.prompt:
        raise ValueError("--prompt needs the export of a causal model or of a model of pairs.")
    can_fill = "fill_mask" in model.signatures
    if settings.fill and not can_fill:
        raise ValueError("--fill needs the export of a masked language model.")
    asked = settings.fill or settings.nearest
    questions = fitting_questions(model, told=not asked)
    has_all = True
    if can_fill and not (asked and not settings.fill):
        mask = mask_of(model)
        own = [text.replace(MASKS[0], mask) for text in questions.fill]
        has_all = fill_blanks(model, settings.fill or own) or not settings.fill
    if not (asked and not settings.nearest):
        rank_sentences(model, settings.nearest or questions.nearest, questions.sentences)
    return has_all


def write_on(model, settings):
    """Prints what a language model writes after prompts, some of its own if there are none.

    A model of pairs writes the targets of these sources.

    Raises:
        ValueError: if there is another question.
    """
    if settings.fill or settings.nearest:
        raise ValueError(
            "--fill and --nearest need the export of a masked language model or of an encoder: one "
            "that writes takes --prompt."
        )
    write = model.signatures["serving_default"]
    for prompt in settings.prompt or BEGINNINGS:
        try:
            answer = write(text=tf.constant([prompt]))["text"].numpy()[0]
        except tf.errors.InvalidArgumentError as error:
            if not settings.prompt:
                continue  # the texts of this model are shorter
            found = re.search(r"assertion failed: \[(.*)\]", str(error))
            sentence = found[1] if found else "This prompt cannot be gone on with."
            raise ValueError(f"{sentence} Received: {prompt!r}") from error
        print(f"{prompt}\n    {answer.decode(errors='replace')}")
    return True


def fitting_questions(model, told=False):
    """Returns the questions in the manner that the model's vocabulary fits best.

    Args:
        model: as `training.query.strings.load` returns it.
        told: whether to print which one it is, and why.
    """
    around = tokens_of(model, [""])[0][0]  # special tokens
    found, shares = fitting(lambda texts: [n - around for n in tokens_of(model, texts)[0]])
    if told:
        numbers = ", ".join(f"{style} {share:.2f}" for style, share in shares.items())
        print(f"questions in the manner of: {found.style} (pieces per word: {numbers})")
    return found
