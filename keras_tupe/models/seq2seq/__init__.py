"""An encoder and a decoder beside it, their rows of pairs of texts, beams and smoothed labels.

For whoever translates, summarises or restores texts: `keras_tupe.TupeSeq2SeqLM` trains on pairs and
writes the second text of a pair by itself.
"""

from keras_tupe.models.seq2seq.backbone import TupeSeq2SeqBackbone
from keras_tupe.models.seq2seq.beam_search import BeamSearch
from keras_tupe.models.seq2seq.preprocessor import TupeSeq2SeqLMPreprocessor
from keras_tupe.models.seq2seq.smoothed_crossentropy import SmoothedCrossentropy

__all__ = [
    "BeamSearch",
    "SmoothedCrossentropy",
    "TupeSeq2SeqBackbone",
    "TupeSeq2SeqLMPreprocessor",
]
