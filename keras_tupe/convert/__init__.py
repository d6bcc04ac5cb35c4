"""Weights of others: TUPE's and Hugging Face's checkpoints, KerasHub's presets, and new methods.

For whoever has a trained BERT, MPNet, RoBERTa, DeBERTa, ELECTRA, ALBERT, RoFormer, GPT-2,
Longformer or BART and wants it here, or here and wants it there.
Each conversion returns a `Report` beside the model, which names every weight that was kept, dropped
or made new. Files of torch are read without torch, and nothing in them is run.
"""

from keras_tupe._keywords import refuse_unknown_keywords
from keras_tupe.convert.graft_position import graft_position
from keras_tupe.convert.hugging_face.engine import from_hf, to_hf
from keras_tupe.convert.keras_hub_bert import from_keras_hub_bert
from keras_tupe.convert.report import Report
from keras_tupe.convert.sentence_transformers.read import from_sentence_transformers
from keras_tupe.convert.tupe.checkpoint import from_tupe_checkpoint

__all__ = [
    "Report",
    "from_hf",
    "from_keras_hub_bert",
    "from_sentence_transformers",
    "from_tupe_checkpoint",
    "graft_position",
    "to_hf",
]

refuse_unknown_keywords(globals())
