"""Answers of an export: to the example beside it, and to questions."""

import pathlib
import zipfile

import numpy as np
import tensorflow as tf

TOLERANCE = 1e-5
# what TensorFlow and NumPy raise for files that are not whole
_DAMAGE = (OSError, ValueError, LookupError, RuntimeError, zipfile.BadZipFile, tf.errors.OpError)
MASKS = ("[MASK]", "<mask>")  # as vocabularies write it
FILL = [
    "Returns a [MASK] of the array.",
    "If the file does not [MASK], an error is raised.",
    "The default [MASK] is None.",
]
NEAREST = ["Write the text to a file on disk."]
SENTENCES = [
    "Open the file and read the whole content.",
    "Return the sum of the elements over an axis.",
    "The gradient of the loss with respect to the weights.",
    "Raise an exception if the argument is not valid.",
    "Convert the string to lower case.",
    "Remove the directory and all files in it.",
    "A layer that applies dropout to the input.",
    "Wait until the thread has finished.",
]


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
        return worst, answer(settings) if settings.has_text else True
    except _DAMAGE as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(f"{reason} Received: {settings.folder!r}") from error


def check_example(folder):
    """Prints how far the SavedModel is from the stored outputs and returns the difference.

    Of each output the largest difference, relative to its largest value if that is above 1.
    """
    example = _read_example(folder / "example.npz")
    encoder = tf.saved_model.load(str(folder))  # kept: its functions die with it
    names = ("input_word_ids", "input_mask", "input_type_ids")
    inputs = {name: tf.constant(example[name]) for name in names}
    answers = {
        "encoder": encoder(inputs),
        "serving_default": encoder.signatures["serving_default"](**inputs),
    }
    if hasattr(encoder, "mlm"):
        positions = tf.constant(example["masked_lm_positions"])
        answers["mlm"] = encoder.mlm({**inputs, "masked_lm_positions": positions})
    differences = [
        float(np.abs(value.numpy() - example[name]).max() / max(1, np.abs(example[name]).max()))
        for answer in answers.values()
        for name, value in answer.items()
        if name in example
    ]
    worst = max(differences) if np.isfinite(differences).all() else np.inf
    print(
        f"parity with the model that was exported: largest relative difference {worst:.1e}",
        flush=True,
    )
    return worst


def _read_example(path):
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except Exception as error:  # what NumPy and zipfile raise for a damaged file is open
        raise ValueError(f"{path.name} is damaged ({type(error).__name__}: {error}).") from error


def fill_blanks(model, texts):
    """Prints the likeliest pieces for the blank of each text; returns whether all had one."""
    fill = model.signatures["fill_mask"]
    known = fill(text=tf.constant(MASKS))["num_masks"].numpy()
    mask = next((word for word, count in zip(MASKS, known, strict=True) if count), MASKS[0])
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


def rank_sentences(model, texts):
    """Prints the sentences of the small set, nearest first."""
    embed = model.signatures["embed"]
    sentences = embed(text=tf.constant(SENTENCES))["embedding"].numpy()
    counts, length = tokens_of(model, texts)
    vectors = embed(text=tf.constant(texts))["embedding"].numpy()
    for text, vector, count in zip(texts, vectors, counts, strict=True):
        cosines = sentences @ vector
        print(f"nearest to: {text}")
        if count == length:
            print(f"    this fills the {length} tokens that the model reads; no more is read")
        for index in np.argsort(-cosines)[:3]:
            print(f"    {cosines[index]:.3f}  {SENTENCES[index]}")


def answer(settings):
    """Answers the questions, or some of its own if there are none; returns whether all could be.

    Raises:
        ValueError: if there is a blank to fill and the model cannot.
    """
    import tensorflow_text  # noqa: F401  registers the tokenizer's op

    model = tf.saved_model.load(str(pathlib.Path(settings.folder) / "text"))
    can_fill = "fill_mask" in model.signatures
    if settings.fill and not can_fill:
        raise ValueError("--fill needs the export of a masked language model.")
    asked = settings.fill or settings.nearest
    has_all = True
    if can_fill and not (asked and not settings.fill):
        has_all = fill_blanks(model, settings.fill or FILL) or not settings.fill
    if not (asked and not settings.nearest):
        rank_sentences(model, settings.nearest or NEAREST)
    return has_all
