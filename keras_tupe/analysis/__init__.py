"""Analysis of what encoders learned about positions: ranks, Toeplitz parts, patterns of heads.

For whoever wants to see, in a trained model, what a head does with positions, or how far a position
bias is one of distance. Functions of arrays, in NumPy, for every Keras backend; those that take a
backbone read it and leave it as it is. None of this is imported by `import keras_tupe`.
"""

from keras_tupe.analysis.attention_patterns import ATTENTION_PATTERNS, name_patterns
from keras_tupe.analysis.cls_attention import ClsAttention, cls_attention
from keras_tupe.analysis.correlation_rank import correlation_rank
from keras_tupe.analysis.distance_tables import DistanceTable, distance_tables
from keras_tupe.analysis.head_importance import head_importance
from keras_tupe.analysis.mean_attention_scores import mean_attention_scores
from keras_tupe.analysis.position_logits import position_logits
from keras_tupe.analysis.remove_row_constants import remove_row_constants
from keras_tupe.analysis.seen_keys import seen_keys
from keras_tupe.analysis.toeplitz_energy import toeplitz_energy
from keras_tupe.analysis.toeplitz_factors import toeplitz_factors, toeplitz_from_factors
from keras_tupe.analysis.toeplitz_part import toeplitz_part

__all__ = [
    "ATTENTION_PATTERNS",
    "ClsAttention",
    "DistanceTable",
    "cls_attention",
    "correlation_rank",
    "distance_tables",
    "head_importance",
    "mean_attention_scores",
    "name_patterns",
    "position_logits",
    "remove_row_constants",
    "seen_keys",
    "toeplitz_energy",
    "toeplitz_factors",
    "toeplitz_from_factors",
    "toeplitz_part",
]
