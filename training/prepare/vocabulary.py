"""The vocabulary of a preparation: trained on word counts, or the user's own."""

import functools
import pathlib
import tempfile

from keras_tupe.data import WordCounts, wordpiece_from_counts, wordpiece_words
from keras_tupe.data.corpus.vocabulary import sentencepiece_bpe_from_counts
from keras_tupe.tokenizers import SentencePieceBpe, WordPiece
from training.prepare.settings import vocabulary_size

TOKENIZERS = {"wordpiece": WordPiece, "sentencepiece": SentencePieceBpe}


def word_counts(settings):
    """An empty `WordCounts` for the kind of vocabulary that is asked for."""
    return WordCounts(_words(settings.lowercase) if settings.tokenizer == "wordpiece" else None)


_words = functools.cache(wordpiece_words)


def train(counts, settings):
    """The tokenizer of a vocabulary that is trained on words, which must be enough."""
    if not counts:
        raise ValueError(
            "No document of the training part was sampled for the vocabulary. Give more text, "
            "raise --vocabulary-words or lower --valid. "
            f"Received: vocabulary_words={settings.vocabulary_words}, valid={settings.valid}"
        )
    size = vocabulary_size(settings)
    if settings.tokenizer == "wordpiece":
        return WordPiece(wordpiece_from_counts(counts, size), lowercase=settings.lowercase)
    model = sentencepiece_bpe_from_counts(counts, size, settings.lowercase)
    return SentencePieceBpe(model, lowercase=settings.lowercase)


def load(path, settings):
    """The tokenizer of a vocabulary file; raises as the tokenizer's class does."""
    return TOKENIZERS[settings.tokenizer](pathlib.Path(path), lowercase=settings.lowercase)


@functools.cache
def from_bytes(content, settings):
    """The tokenizer of the content of a vocabulary file: what Beam sends to its workers."""
    if settings.tokenizer == "sentencepiece":
        return SentencePieceBpe(content, lowercase=settings.lowercase)
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return load(file.name, settings)


def facts(tokenizer, settings, file_hash):
    """What readers of the rows must know about their vocabulary, as a JSON dictionary."""
    names = ("lowercase", "start_id", "end_id", "pad_id", "mask_id", "unknown_id")
    return {
        "kind": settings.tokenizer,
        "file": tokenizer.file_name,
        "sha256": file_hash,
        "size": tokenizer.vocabulary_size,
        **{name: getattr(tokenizer, name) for name in names},
        "special_ids": list(tokenizer.special_ids),
    }
