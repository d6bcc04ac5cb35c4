"""Text to arrays: documents, vocabularies, rows, masks and the word-order task.

NumPy only, for every backend. Nothing here needs TensorFlow: whoever cuts text hands over the
tokenizer's function.
"""

from keras_tupe.data.checks import check_rows
from keras_tupe.data.corpus import corpus_hash, count_words, read_documents, split_documents
from keras_tupe.data.embedded import SOURCES, embedded_documents
from keras_tupe.data.masking import Masking, mask_rows
from keras_tupe.data.packing import PackedRows, pack_rows, tokenize_documents
from keras_tupe.data.prose import prose_paragraphs
from keras_tupe.data.rows import Rows
from keras_tupe.data.sentences import split_sentences
from keras_tupe.data.vocabulary import train_sentencepiece_bpe, train_wordpiece
from keras_tupe.data.word_order import WordOrderPairs, word_order_pairs

__all__ = [
    "SOURCES",
    "Masking",
    "PackedRows",
    "Rows",
    "WordOrderPairs",
    "check_rows",
    "corpus_hash",
    "count_words",
    "embedded_documents",
    "mask_rows",
    "pack_rows",
    "prose_paragraphs",
    "read_documents",
    "split_documents",
    "split_sentences",
    "tokenize_documents",
    "train_sentencepiece_bpe",
    "train_wordpiece",
    "word_order_pairs",
]
