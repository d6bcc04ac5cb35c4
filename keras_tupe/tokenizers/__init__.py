"""Text to ids, with the same TensorFlow op in training and in serving.

For whoever needs token ids without a model; with one, `TupeTokenizer` holds what is here. Needs
TensorFlow and tensorflow_text. Import it where it is used, so that the rest of the package runs
without them.
"""

from keras_tupe.tokenizers.byte_level_bpe import ByteLevelBpe
from keras_tupe.tokenizers.fast_bpe import FastBpe
from keras_tupe.tokenizers.mask_tokens import mask_tokens
from keras_tupe.tokenizers.rows import pack_segments
from keras_tupe.tokenizers.sentencepiece_bpe import SentencePieceBpe
from keras_tupe.tokenizers.wordpiece import WordPiece

__all__ = [
    "ByteLevelBpe",
    "FastBpe",
    "SentencePieceBpe",
    "WordPiece",
    "mask_tokens",
    "pack_segments",
]
