"""Minimal pairs as the token ids of a preset."""

import dataclasses

import numpy as np

from keras_tupe import TupeCausalLM, TupeMaskedLM, TupeTokenDiscriminator
from keras_tupe.data.corpus.prepared_vocabulary import word_starts
from keras_tupe.data.rows.masking import starts_of_words

_KINDS = (TupeMaskedLM, TupeCausalLM, TupeTokenDiscriminator)


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The pairs of one paradigm that are scored.

    Attributes:
        uid: name of the paradigm.
        field: its field.
        phenomenon: its phenomenon.
        texts: list of (good, bad) sentences.
        ids: list of (good, bad) lists of token ids, without special tokens.
    """

    uid: str
    field: str
    phenomenon: str
    texts: list
    ids: list

    @property
    def num_tokens(self):
        """Tokens of all sentences together."""
        return sum(len(good) + len(bad) for good, bad in self.ids)


class Encoder:
    """Cuts sentences as a preset does, without ever cutting one short.

    Args:
        model, text: what `load_preset` returns.
        preset: the preset as the user named it, for messages.

    Attributes:
        mask_id, unknown_id: ids of special tokens; a causal model's may have no mask.
        is_causal: whether sentences are scored from left to right.
        is_discriminator: whether they are scored by which tokens look replaced.
        before, after: ids around a sentence, lists.

    Raises:
        ValueError: if the preset is no language model or has no tokenizer, or one that does not
            fit the model.
    """

    def __init__(self, model, text, preset):
        self.is_causal = isinstance(model, TupeCausalLM)
        self.is_discriminator = isinstance(model, TupeTokenDiscriminator)
        if not isinstance(model, _KINDS):
            raise ValueError(
                "The preset must be a masked or a causal language model, or a discriminator of "
                "replaced tokens, since sentences are scored by its predictions. "
                "`training.pretrain` makes one. "
                f"Received: {preset!r}, a {type(model).__name__}"
            )
        if text is None:
            raise ValueError(
                "The preset must have a tokenizer. Save it with a preprocessor, as "
                f"`training.pretrain` does. Received: {preset!r}"
            )
        tokenizer = getattr(text, "tokenizer", text)
        backbone = model.backbone
        if tokenizer.vocabulary_size() > backbone.vocabulary_size:
            raise ValueError(
                "The preset's tokenizer must not have more pieces than its model. Received: "
                f"{preset!r} with {tokenizer.vocabulary_size()} pieces for a model of "
                f"{backbone.vocabulary_size}"
            )
        self._op = tokenizer.op
        self._begins_word = word_starts(self._op.pieces, tokenizer.kind)
        self._is_special = np.isin(np.arange(len(self._begins_word)), self._op.special_ids)
        self._longest = backbone.max_sequence_length if backbone.has_length_limit else None
        self.mask_id = None if self.is_causal else self._op.mask_id
        self.unknown_id = self._op.unknown_id
        has_start = getattr(text, "add_start_token", True)
        self.before = [self._op.start_id] if has_start else []
        self.after = [] if self.is_causal else [self._op.end_id]

    def pairs(self, paradigm, limit=None, skipped=None):
        """Returns the `Pairs` of a paradigm.

        Args:
            paradigm: a `BlimpParadigm`.
            limit: the most pairs to take, from the first on. Defaults to all.
            skipped: a list: then pairs that the model cannot take are left out, and a sentence
                for each is appended to it.

        Raises:
            ValueError: if a sentence is longer than the model's tables or has no token, or no pair
                is left.
        """
        texts = list(zip(paradigm.good, paradigm.bad, strict=True))[:limit]
        cut = self._op.tokenize([text for pair in texts for text in pair]).to_list()
        kept, ids = [], []
        for number, pair in enumerate(texts):
            found = (cut[2 * number], cut[2 * number + 1])
            problem = self._problem(paradigm.uid, number, pair, found)
            if problem is None:
                kept.append(pair)
                ids.append(found)
            elif skipped is None:
                raise ValueError(problem)
            else:
                skipped.append(problem)
        if not kept:
            raise ValueError(
                "A paradigm must have at least one pair that the model can take. "
                f"Received: {paradigm.uid}, of which all {len(texts)} pairs were left out"
            )
        return Pairs(paradigm.uid, _field(paradigm.field), paradigm.linguistics_term, kept, ids)

    def word_starts(self, ids):
        """Which tokens begin a word, bool of the shape of `ids`, `(sentences, length)`."""
        return starts_of_words(ids, self._begins_word, self._is_special)

    def _problem(self, uid, number, texts, ids):
        """Returns what is wrong with a pair, or `None`."""
        for text, row in zip(texts, ids, strict=True):
            length = len(self.before) + len(row) + len(self.after)
            where = f"{text!r}, pair {number + 1} of {uid}"
            if not row:
                return (
                    "A sentence must have at least one token, to be scored. Leave its pair out "
                    f"with --skip-bad. Received: {where}"
                )
            if self._longest is not None and length > self._longest:
                return (
                    f"A sentence must fit into the {self._longest} tokens of the model's position "
                    "tables, special tokens included; none is cut. Leave its pair out with "
                    f"--skip-bad. Received: {length} tokens of {where}"
                )
        return None


def _field(field):
    """Returns the field in one spelling; BLiMP has `syntax/semantics` in one of its files."""
    return field.replace("/", "_")
