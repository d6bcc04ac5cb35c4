"""Scores of sentences by a masked or a causal language model, or a discriminator of tokens."""

import keras
import numpy as np
from keras import ops

from training.finetune.forward import Forward
from training.presets.token_losses import TokenLosses


def by_length(sentences, score):
    """Scores sentences, the equally long ones together and equal ones once, so that they tie.

    Args:
        sentences: list of token ids, integers.
        score: function of ids `(sentences, length)`, int32, to their scores `(sentences,)`.

    Returns:
        float64, `(sentences,)`; 0 for a sentence without tokens.

    Raises:
        ValueError: if a score is not a finite number.
    """
    numbers = {}
    for ids in map(tuple, sentences):
        numbers.setdefault(ids, len(numbers))
    found = np.zeros(len(numbers))
    lengths = np.array([len(ids) for ids in numbers], int)
    distinct = list(numbers)
    for length in sorted(set(lengths.tolist()) - {0}):
        members = np.flatnonzero(lengths == length)
        found[members] = score(np.array([distinct[member] for member in members], "int32"))
    if not np.isfinite(found).all():
        raise ValueError(
            "The scores of a model must be finite numbers; its weights are damaged, or its "
            "training diverged. Received: scores that are infinite or undefined"
        )
    return found[[numbers[ids] for ids in map(tuple, sentences)]]


def _batches(total, size):
    """Yields the numbers of the rows of each batch, and how many of them are used.

    JAX compiles for every shape: there the last batch is filled up with its last row.
    """
    fills = keras.backend.backend() == "jax"
    for start in range(0, total, size):
        used = min(size, total - start)
        numbers = np.arange(start, start + (size if fills else used))
        yield np.minimum(numbers, total - 1), used


def _framed(ids, before, after):
    """Returns ids `(sentences, length)` with what is before and after each."""
    frame = [np.tile(np.array(part, "int32"), (len(ids), 1)) for part in (before, after)]
    return np.concatenate([frame[0], ids, frame[1]], axis=1)


class LogLikelihood:
    """Log-likelihoods of sentences by a causal language model.

    Equation: for a sentence of tokens w_1 ... w_n behind the start token w_0

        LL(w) = sum_t log P(w_t | w_0 ... w_{t - 1})

    in natural logarithms. What comes after the sentence is not predicted. Without a start token the
    sum begins with w_2, since nothing predicts the first token. Rows and ties as in
    `PseudoLogLikelihood`.

    Args:
        model: a `TupeCausalLM`.
        before: ids before a sentence, such as `[2]`, or none.
        batch_tokens: about how many tokens the model gets at once, >= 1; one row at least.

    Raises:
        ValueError: in `scores`, if a score is not a finite number.
    """

    def __init__(self, model, before, batch_tokens=4096):
        self.before = list(before)
        self.batch_tokens = batch_tokens
        self._forward = Forward(TokenLosses(model))

    def scores(self, sentences):
        """Scores sentences.

        Args:
            sentences: list of token ids, integers without special tokens.

        Returns:
            float64, `(sentences,)`, nats; 0 for a sentence of which nothing is predicted.
        """
        return by_length(sentences, self._equally_long)

    def _equally_long(self, ids):
        """Scores of `(sentences, length)` ids without what is before them."""
        rows = _framed(ids, self.before, [])
        count, width = len(rows), rows.shape[1] - 1
        scores = np.zeros(count)
        if not width:
            return scores
        for numbers, used in _batches(count, max(1, self.batch_tokens // width)):
            some = rows[numbers]
            inputs = {"token_ids": some[:, :-1], "padding_mask": np.ones_like(some[:, :-1])}
            losses = self._forward({**inputs, "labels": some[:, 1:]}).astype("float64")
            first = max(len(self.before) - 1, 0)
            scores[numbers[:used]] = -losses[:used, first:].sum(axis=1)
        return scores


class OwnTokenLogLikelihood:
    """How likely each token of a sentence is its own, by a discriminator of replaced tokens.

    Equation: with the logit l_t of token t of the whole sentence, above 0 where the discriminator
    takes it for a replaced one,

        score(w) = sum_t log P(w_t is the text's own | w) = -sum_t log(1 + exp(l_t))

    in natural logarithms, over the tokens of the sentence without its frame. Nothing is masked, so
    a sentence takes one forward pass. It is no likelihood of the sentence: a discriminator tells
    odd tokens from usual ones and not which token stands there. Rows and ties as in
    `PseudoLogLikelihood`.

    Args:
        model: a `TupeTokenDiscriminator`.
        before, after: ids of the frame, such as `[2]` and `[3]`.
        batch_tokens: about how many tokens the model gets at once, >= 1; one row at least.

    Raises:
        ValueError: in `scores`, if a score is not a finite number.

    References:
        Clark et al. ELECTRA. ICLR 2020. https://arxiv.org/abs/2003.10555, section 2, for the
        discriminator; the score of a sentence is ours.
    """

    def __init__(self, model, before, after, batch_tokens=4096):
        self.before, self.after = list(before), list(after)
        self.batch_tokens = batch_tokens
        self._has_segments = bool(model.backbone.num_segments)
        self._forward = Forward(model)

    def scores(self, sentences):
        """Scores sentences.

        Args:
            sentences: list of token ids, integers without special tokens.

        Returns:
            float64, `(sentences,)`, nats; 0 for a sentence without tokens.
        """
        return by_length(sentences, self._equally_long)

    def _equally_long(self, ids):
        """Scores of `(sentences, length)` ids without their frame."""
        rows, scores = _framed(ids, self.before, self.after), np.zeros(len(ids))
        tokens = slice(len(self.before), len(self.before) + ids.shape[1])
        for numbers, used in _batches(len(rows), max(1, self.batch_tokens // rows.shape[1])):
            some = rows[numbers]
            inputs = {"token_ids": some, "padding_mask": np.ones_like(some)}
            if self._has_segments:
                inputs["segment_ids"] = np.zeros_like(some)
            logits = self._forward(inputs)[:used, tokens].astype("float64")
            scores[numbers[:used]] = -np.logaddexp(0.0, logits).sum(axis=1)
        return scores


class PseudoLogLikelihood:
    """Pseudo-log-likelihoods of sentences: each token is masked in turn and predicted.

    Equation (Salazar et al. 2020, section 2): for a sentence of tokens w_1 ... w_n

        PLL(w) = sum_t log P(w_t | w with [MASK] at the positions M_t)

        M_t = {t}                                                 score "token"
        M_t = {t and the later tokens of the word that t is in}   score "word"

    in natural logarithms. The model sees the frame, such as [CLS] w [SEP], which is neither masked
    nor predicted. The second score is Kauf and Ivanova's `within_word_l2r`: a piece is not given
    away by the rest of its own word, which would make words of many pieces look likely.

    All rows of a batch are equally long, so nothing is padded, and equal sentences are scored once,
    so that they tie exactly. What is scored beside a sentence may change the rounding of its score.

    Args:
        model: a `TupeMaskedLM`; where it has segments, sentences are of the first.
        mask_id: id of the mask token.
        before, after: ids of the frame, such as `[2]` and `[3]`.
        word_starts: function of ids `(sentences, length)` that tells, by a bool of that shape,
            which of them begin a word: the score "word". Defaults to `None`, the score "token".
        batch_tokens: about how many tokens the model gets at once, >= 1; one row at least.

    Raises:
        ValueError: in `scores`, if a score is not a finite number.

    References:
        Salazar et al. Masked Language Model Scoring. ACL 2020. https://arxiv.org/abs/1910.14659
        Kauf, Ivanova. A Better Way to Do Masked Language Model Scoring. ACL 2023.
        https://arxiv.org/abs/2305.10588
    """

    def __init__(self, model, mask_id, before, after, word_starts=None, batch_tokens=4096):
        self.mask_id = int(mask_id)
        self.before, self.after = list(before), list(after)
        self.word_starts = word_starts
        self.batch_tokens = batch_tokens
        self._has_segments = bool(model.backbone.num_segments)
        self._forward = Forward(_target_model(model))

    def scores(self, sentences, progress=None):
        """Scores sentences.

        Args:
            sentences: list of token ids, integers without special tokens.
            progress: optional function that is told the number of tokens scored, batch by batch.

        Returns:
            float64, `(sentences,)`, nats; 0 for a sentence without tokens.
        """
        return by_length(sentences, lambda ids: self._equally_long(ids, progress))

    def _equally_long(self, ids, progress):
        """Scores of `(sentences, length)` ids without their frame."""
        count, length = ids.shape
        rows = _framed(ids, self.before, self.after)  # (sentences, width)
        words = self._words(ids)
        total, width = count * length, rows.shape[1]
        size = max(1, self.batch_tokens // width)
        scores = np.zeros(count)
        for numbers, used in _batches(total, size):
            sentence, position = np.divmod(numbers, length)
            word = words[sentence]  # (rows, length)
            hidden = (np.arange(length) >= position[:, None]) & (
                word == np.take_along_axis(word, position[:, None], axis=1)
            )
            inputs = rows[sentence]
            first = len(self.before)
            inputs[:, first : first + length][hidden] = self.mask_id
            targets = ids[sentence, position][:, None]
            logs = self._log_probabilities(inputs, first + position[:, None], targets)
            scores += np.bincount(sentence[:used], weights=logs[:used], minlength=count)
            if progress is not None:
                progress(used)
        return scores

    def _words(self, ids):
        """The number of the word that each token is in, `(sentences, length)`."""
        if self.word_starts is None:
            return np.tile(np.arange(ids.shape[1]), (len(ids), 1))
        return self.word_starts(ids).cumsum(axis=1)

    def _log_probabilities(self, token_ids, positions, targets):
        inputs = {
            "token_ids": token_ids,
            "padding_mask": np.ones_like(token_ids),
            "mask_positions": positions.astype("int32"),
            "targets": targets,
        }
        if self._has_segments:
            inputs["segment_ids"] = np.zeros_like(token_ids)
        return self._forward(inputs).astype("float64")


def _target_model(model):
    """Returns a model: masked rows, a position and the token there -> log probabilities (rows,)."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in model.input}
    targets = keras.Input((1,), dtype="int32", name="targets")
    logits = model(inputs)  # (rows, 1, vocabulary_size)
    chosen = ops.take_along_axis(logits, ops.expand_dims(targets, -1), axis=-1)
    scores = chosen - ops.logsumexp(logits, axis=-1, keepdims=True)
    return keras.Model({**inputs, "targets": targets}, scores[:, 0, 0])
