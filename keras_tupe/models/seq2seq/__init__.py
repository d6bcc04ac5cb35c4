"""An encoder and a decoder beside it: from one text to another.

For whoever translates, summarises or restores texts: `TupeSeq2SeqLM` trains on pairs and writes the
second text of a pair by itself, with `BeamSearch` if wished.
"""

from keras_tupe._keywords import refuse_unknown_keywords
from keras_tupe.models.seq2seq.backbone import TupeSeq2SeqBackbone
from keras_tupe.models.seq2seq.beam_search import BeamSearch
from keras_tupe.models.seq2seq.lm import TupeSeq2SeqLM
from keras_tupe.models.seq2seq.preprocessor import TupeSeq2SeqLMPreprocessor
from keras_tupe.models.seq2seq.smoothed_crossentropy import SmoothedCrossentropy

__all__ = [
    "BeamSearch",
    "SmoothedCrossentropy",
    "TupeSeq2SeqBackbone",
    "TupeSeq2SeqLM",
    "TupeSeq2SeqLMPreprocessor",
]

refuse_unknown_keywords(globals())
