"""Analysis of what encoders learned about positions: ranks, Toeplitz parts, patterns of heads.

Functions of arrays, in NumPy, for every Keras backend; those that take a backbone read it and leave
it as it is. None of this is imported by `import keras_tupe`.
"""

from keras_tupe.analysis.attention import (
    ClsAttention,
    cls_attention,
    mean_attention_scores,
    seen_keys,
)
from keras_tupe.analysis.attention_patterns import ATTENTION_PATTERNS, name_patterns
from keras_tupe.analysis.embedding_correlations import CORRELATIONS, embedding_correlations
from keras_tupe.analysis.head_importance import head_importance
from keras_tupe.analysis.positions import DistanceTable, distance_tables, position_logits
from keras_tupe.analysis.toeplitz import (
    correlation_rank,
    remove_row_constants,
    toeplitz_energy,
    toeplitz_part,
)

__all__ = [
    "ATTENTION_PATTERNS",
    "CORRELATIONS",
    "ClsAttention",
    "DistanceTable",
    "cls_attention",
    "correlation_rank",
    "distance_tables",
    "embedding_correlations",
    "head_importance",
    "mean_attention_scores",
    "name_patterns",
    "position_logits",
    "remove_row_constants",
    "seen_keys",
    "toeplitz_energy",
    "toeplitz_part",
]
