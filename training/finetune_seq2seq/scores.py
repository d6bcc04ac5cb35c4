"""Scores of what was written, beside what should have been."""

from sacrebleu.metrics import BLEU, CHRF

from keras_tupe.data import wordpiece_words
from keras_tupe.metrics import wilson_interval

MEASURES = {"exact_match": "exact match", "chrf": "chrF", "bleu": "BLEU"}


def score(targets, predictions, lowercase):
    """Scores texts.

    Exact match is the share of the texts that have the words and marks of their target, whatever
    white space is between them: a WordPiece vocabulary does not know of it. chrF and BLEU are
    those of the library sacrebleu, of the targets as they are in the file.

    Args:
        targets: list of texts.
        predictions: list of as many texts.
        lowercase: whether the vocabulary lower-cases; then all scores do not look at case.

    Returns:
        Dictionary of `pairs`, `exact_match`, `chrf` and `bleu`, in percent, `exact_match_interval`,
        Wilson's at 95 % over the pairs, and `signatures`: what sacrebleu says of how it counted.
    """
    words = wordpiece_words(lowercase)
    exact = sum(
        _words(target, words) == _words(prediction, words)
        for target, prediction in zip(targets, predictions, strict=True)
    )
    chrf = CHRF(lowercase=lowercase)
    # what a WordPiece vocabulary writes has a space before a full stop: `force` is for that
    bleu = BLEU(lowercase=lowercase, force=True)
    found = {
        name: metric.corpus_score(predictions, [targets]).score
        for name, metric in (("chrf", chrf), ("bleu", bleu))
    }
    interval = wilson_interval(exact, len(targets))
    return {
        "pairs": len(targets),
        "exact_match": 100 * exact / len(targets),
        "exact_match_interval": [100 * end for end in interval],
        **found,
        "signatures": {"chrf": str(chrf.get_signature()), "bleu": str(bleu.get_signature())},
    }


def _words(text, words):
    return [part for word in text.split() for part in words(word)]
