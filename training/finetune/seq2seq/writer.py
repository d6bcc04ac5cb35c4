"""What a model writes to sources, and its scores."""

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from keras_tupe.data import wordpiece_words
from keras_tupe.metrics import wilson_interval
from keras_tupe.models import BeamSearch

MEASURES = {"exact_match": "exact match", "chrf": "chrF", "bleu": "BLEU"}

_ROWS = 64  # sources at once, at most
_WIDTHS = (32, 64, 128, 256, 512)  # of sources; for each the model is compiled


class Writer:
    """Writes targets to sources, batch by batch; compiled once for each width of sources."""

    def __init__(self, model, preprocessor, settings):
        sampler = "greedy"
        if settings.num_beams > 1:
            sampler = BeamSearch(settings.num_beams, settings.length_penalty)
        model.compile(sampler=sampler)
        self._model, self._preprocessor = model, preprocessor
        self._tokenizer = preprocessor.tokenizer.op
        self._size = min(settings.batch_size, _ROWS)

    def texts(self, sources, progress=None):
        """Returns the texts that the model writes to tokens of sources, in one line each.

        What is told the `progress` is how many are done.
        """
        size = self._size
        order = np.argsort([len(row) for row in sources], kind="stable")
        found = [None] * len(sources)
        for start in range(0, len(order), size):
            numbers = order[start : start + size]
            rows = [sources[number] for number in numbers]
            rows += [rows[-1]] * (size - len(rows))  # all batches have as many
            ends = [self._tokenizer.end_id]
            outputs = self._model.generate(self._inputs(rows), stop_token_ids=ends)
            texts = self._preprocessor.generate_postprocess(outputs)
            for number, text in zip(numbers, texts, strict=False):
                found[number] = " ".join(text.split())
            if progress is not None:
                progress(start + len(numbers))
        return found

    def _inputs(self, rows):
        """Returns the inputs of a model that has written nothing yet."""
        tokenizer, preprocessor = self._tokenizer, self._preprocessor
        longest = max(map(len, rows))
        width = next((width for width in _WIDTHS if width >= longest), longest)
        width = min(width, preprocessor.encoder_sequence_length)
        ids = np.full((len(rows), width), tokenizer.pad_id, "int32")
        mask = np.zeros(ids.shape, "int32")
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        shape = len(rows), preprocessor.decoder_sequence_length
        begun = np.full(shape, tokenizer.pad_id, "int32")
        is_given = np.zeros(shape, "int32")
        first = [tokenizer.end_id] if preprocessor.decoder_starts_with_end else []
        first.append(tokenizer.start_id)
        begun[:, : len(first)] = first
        is_given[:, : len(first)] = 1
        return {
            "encoder_token_ids": ids,
            "encoder_padding_mask": mask,
            "decoder_token_ids": begun,
            "decoder_padding_mask": is_given,
        }


def score(targets, predictions, lowercase):
    """Scores texts.

    Exact match is the share of the texts that have the words and marks of their target, whatever
    white space is between them: a WordPiece vocabulary does not know of it. chrF and BLEU are
    those of the library sacrebleu, of the targets as they are in the file; `signatures` is what it
    says of how it counted. Where the vocabulary lower-cases, no score looks at case. Scores are in
    percent, `exact_match_interval` is Wilson's at 95 % over the pairs.
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
