"""Small vocabularies of every kind, trained on a few sentences, for tests that need text."""

import collections
import functools
import io
import itertools
import re

import sentencepiece
import tokenizers
from golden_cases import GOLDEN

from keras_tupe.tokenizers import ByteLevelBpe, FastBpe, SentencePieceBpe, WordPiece

BYTE_PAIRS = GOLDEN / "byte_pairs"

SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "A cat sat on the mat, and the dogs ran to the park!",
    "She sells sea shells by the sea shore; he reads old books.",
    "How many words does a small vocabulary need? Not many.",
    "Positions of words matter: dog bites man is not man bites dog.",
    "Reading and writing texts, jumping and running, walking and talking.",
]
BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TUPE_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


@functools.cache
def wordpiece_pieces():
    """Returns the pieces of a WordPiece vocabulary of about 150 pieces."""
    trained = tokenizers.BertWordPieceTokenizer(lowercase=True)
    trained.train_from_iterator(
        SENTENCES, vocab_size=150, min_frequency=1, special_tokens=BERT_TOKENS, show_progress=False
    )
    vocabulary = trained.get_vocab()
    return sorted(vocabulary, key=vocabulary.get)


@functools.cache
def sentencepiece_model(**options):
    """Returns the bytes of a SentencePiece BPE model of 150 pieces, trained with `options`."""
    defaults = {"control_symbols": "<mask>", "normalization_rule_name": "nmt_nfkc_cf"}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        model_type="bpe",
        vocab_size=150,
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
        **(defaults | options),
    )
    return model.getvalue()


@functools.cache
def fast_bpe_files():
    """Returns pieces and codes of fastBPE: every word of the sentences is one piece."""
    words = [list(word) for word in re.findall(r"\w+|[^\w\s]", " ".join(SENTENCES).lower())]
    words = [[*word[:-1], word[-1] + "</w>"] for word in words]
    texts = {symbol for word in words for symbol in word}
    codes = []
    while any(len(word) > 1 for word in words):
        pairs = collections.Counter(pair for word in words for pair in itertools.pairwise(word))
        codes.append(max(pairs, key=lambda pair: (pairs[pair], pair)))
        texts.add("".join(codes[-1]))
        words = [merged(word, codes[-1]) for word in words]
    pieces = sorted(x.removesuffix("</w>") if x.endswith("</w>") else f"{x}@@" for x in texts)
    return [*TUPE_TOKENS[:4], *pieces, "<mask>"], codes


def merged(symbols, pair):
    """Returns symbols, two neighbours joined wherever they are, from the left."""
    found = []
    for symbol in symbols:
        if found and (found[-1], symbol) == pair:
            found[-1] = "".join(pair) + "\0"  # closed: it is merged no more in this round
        else:
            found.append(symbol)
    return [symbol.removesuffix("\0") for symbol in found]


@functools.cache
def tokenizer(kind):
    """Returns the tokenizer of a kind of `TupeTokenizer`."""
    if kind == "fast_bpe":
        return FastBpe(*fast_bpe_files())
    if kind == "byte_pair":
        return ByteLevelBpe(BYTE_PAIRS / "roberta" / "vocab.json")
    if kind == "wordpiece":
        return WordPiece(wordpiece_pieces())
    return SentencePieceBpe(sentencepiece_model())
