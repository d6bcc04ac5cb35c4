"""What the demo asks a model: blanks, near sentences, word order, heads."""

import numpy as np
import tensorflow as tf

from keras_tupe import TupeMaskedLM
from keras_tupe.export.text import text_functions
from training.demo.sentences import MASK
from training.draw.drawings import drawings_of
from training.evaluate.sentences import Encoder, PseudoLogLikelihood
from training.presets.load import load_preset

CANDIDATES = 4  # for a blank, and for a question


class Knowledge:
    """A masked language model that is asked.

    Args:
        preset: `pathlib.Path` of the preset.

    Attributes:
        model: the `TupeMaskedLM`.

    Raises:
        ValueError, OSError: if it cannot be loaded, or is no masked language model with a
            tokenizer.
    """

    def __init__(self, preset):
        self.model, text = load_preset(preset)
        if not isinstance(self.model, TupeMaskedLM):
            raise ValueError(
                "The preset must be a masked language model, since the demonstration fills blanks. "
                "`training.pretrain` makes one. "
                f"Received: {str(preset)!r}, a {type(self.model).__name__}"
            )
        self._encoder = Encoder(self.model, text, str(preset))
        self._tokenizer = getattr(text, "tokenizer", text).op
        self._functions = text_functions(self.model, text, top=CANDIDATES)

    @property
    def mask(self):
        """How the vocabulary writes a blank."""
        return self._tokenizer.pieces[self._encoder.mask_id]

    def fill(self, texts):
        """Returns the likeliest pieces for the first blank of each text.

        Args:
            texts: list of strings; a blank is written as `MASK`.

        Returns:
            List of lists of (piece, probability), best first; empty where no blank is read.
        """
        texts = [text.replace(MASK, self.mask) for text in texts]
        found = self._functions["fill_mask"](text=tf.constant(texts))
        found = {name: value.numpy() for name, value in found.items()}
        return [
            [(piece.decode(), float(share)) for piece, share in zip(pieces, shares, strict=True)]
            if count
            else []
            for pieces, shares, count in zip(
                found["tokens"], found["probabilities"], found["num_masks"], strict=True
            )
        ]

    def nearest(self, texts, sentences):
        """Returns the sentences that are nearest to each text.

        Equation: the cosine of x - m and s - m, where x and s are the mean vectors of the tokens
        of text and sentence, of length 1, and m is the mean of all s. Without m, which all
        sentences share, every cosine is near 1.

        Args:
            texts: list of strings.
            sentences: list of strings.

        Returns:
            List of lists of (sentence, cosine), the nearest first.
        """
        vectors = self._functions["embed"](text=tf.constant([*sentences, *texts]))
        vectors = vectors["embedding"].numpy().astype("float64")
        vectors -= vectors[: len(sentences)].mean(axis=0)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        cosines = vectors[len(sentences) :] @ vectors[: len(sentences)].T
        return [
            [(sentences[index], float(row[index])) for index in np.argsort(-row)[:CANDIDATES]]
            for row in cosines
        ]

    def log_probabilities(self, texts):
        """Returns the mean log probability per word of each text, in nats; a mark is a word.

        Each piece is predicted while it and the rest of its word are hidden, see
        `PseudoLogLikelihood`.
        """
        score = PseudoLogLikelihood(
            self.model,
            self._encoder.mask_id,
            self._encoder.before,
            self._encoder.after,
            word_starts=self._encoder.word_starts,
        )
        rows = self._tokenizer.tokenize(texts).to_list()
        words = [int(self._encoder.word_starts(np.array([ids])).sum()) for ids in rows]
        return score.scores(rows) / words

    def drawing(self, origin):
        """Returns the `Drawing` of what the heads add for positions."""
        backbone = self.model.backbone
        return drawings_of(backbone, backbone.max_sequence_length, origin)[0]
