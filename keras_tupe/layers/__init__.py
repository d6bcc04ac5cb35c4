"""Keras layers of the encoders; any Keras backend.

Each layer is one part of an equation, and works in any Keras model. Take them to build an encoder
or a positional method of your own.

Papers:
- Clark et al. 2020: ELECTRA. ICLR. https://arxiv.org/abs/2003.10555
- Devlin et al. 2019: BERT. NAACL. https://arxiv.org/abs/1810.04805
- He et al. 2023: DeBERTaV3. ICLR. https://arxiv.org/abs/2111.09543
- Hendrycks and Gimpel 2016: Gaussian Error Linear Units. https://arxiv.org/abs/1606.08415
- Huang et al. 2020: Improve Transformer Models with Better Relative Position Embeddings. Findings
  of EMNLP. https://arxiv.org/abs/2009.13658
- Ke et al. 2021: Rethinking Positional Encoding in Language Pre-training (TUPE). ICLR.
  https://arxiv.org/abs/2006.15595
- Raffel et al. 2020: T5. JMLR. https://arxiv.org/abs/1910.10683
- Shaw et al. 2018: Relative Position Representations. NAACL. https://arxiv.org/abs/1803.02155
- Srivastava et al. 2014: Dropout: a simple way to prevent neural networks from overfitting. JMLR.
- Vaswani et al. 2017: Attention is all you need. NeurIPS. https://arxiv.org/abs/1706.03762
"""

from keras_tupe.layers.absolute_position_embedding import AbsolutePositionEmbedding
from keras_tupe.layers.abstract_distance_attention import AbstractDistanceAttention
from keras_tupe.layers.abstract_position_tensors import AbstractPositionTensors
from keras_tupe.layers.abstract_self_attention import AbstractSelfAttention
from keras_tupe.layers.attention.block import (
    Block,
    distance_values,
    key_distances,
    query_distances,
    rows_of,
    untied,
)
from keras_tupe.layers.attention.channels import channel_distances
from keras_tupe.layers.attention.core import over_blocks
from keras_tupe.layers.cls_reset import ClsReset
from keras_tupe.layers.combined_position_bias import CombinedPositionBias
from keras_tupe.layers.cross_attention import CrossAttention
from keras_tupe.layers.decoder_block import DecoderBlock
from keras_tupe.layers.discriminator_head import DiscriminatorHead
from keras_tupe.layers.disentangled_embedding import DisentangledEmbedding
from keras_tupe.layers.dropout import Dropout
from keras_tupe.layers.encoder_block import EncoderBlock
from keras_tupe.layers.gelu import gelu, gelu_approximate
from keras_tupe.layers.masked_lm_head import MaskedLMHead
from keras_tupe.layers.plain_self_attention import PlainSelfAttention
from keras_tupe.layers.position_bias import PositionBias
from keras_tupe.layers.position_projection import PositionProjection
from keras_tupe.layers.qkr_multiplicative_attention import QKRMultiplicativeAttention
from keras_tupe.layers.qkr_pairwise_attention import QKRPairwiseAttention
from keras_tupe.layers.relative_bucket_bias import RelativeBucketBias
from keras_tupe.layers.relative_position_table import RelativePositionTable
from keras_tupe.layers.token_embedding import TokenEmbedding
from keras_tupe.layers.token_replacement import TokenReplacement
from keras_tupe.layers.untied_position_bias import UntiedPositionBias
from keras_tupe.layers.untied_positional_attention import UntiedPositionalAttention

__all__ = [
    "AbsolutePositionEmbedding",
    "AbstractDistanceAttention",
    "AbstractPositionTensors",
    "AbstractSelfAttention",
    "Block",
    "ClsReset",
    "CombinedPositionBias",
    "CrossAttention",
    "DecoderBlock",
    "DiscriminatorHead",
    "DisentangledEmbedding",
    "Dropout",
    "EncoderBlock",
    "MaskedLMHead",
    "PlainSelfAttention",
    "PositionBias",
    "PositionProjection",
    "QKRMultiplicativeAttention",
    "QKRPairwiseAttention",
    "RelativeBucketBias",
    "RelativePositionTable",
    "TokenEmbedding",
    "TokenReplacement",
    "UntiedPositionBias",
    "UntiedPositionalAttention",
    "channel_distances",
    "distance_values",
    "gelu",
    "gelu_approximate",
    "key_distances",
    "over_blocks",
    "query_distances",
    "rows_of",
    "untied",
]
