"""Vocabularies trained on documents: WordPiece as BERT's, SentencePiece BPE as TUPE's."""

import collections
import io
import unicodedata

import sentencepiece
import tokenizers

from keras_tupe.data.sentences import split_sentences

WORDPIECE_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # ids 0 to 4

_MIN_PIECES = 100
_MAX_CHARACTER_SHARE = 8  # at most one character per so many pieces of the vocabulary


def train_wordpiece(documents, size=8000, lowercase=True):
    """Trains a WordPiece vocabulary.

    Text is cleaned, lower-cased and split as BERT does, and as the op does that later cuts text
    with this vocabulary (`keras_tupe.tokenizers.WordPiece`). Pieces are merged by
    frequency. The most frequent characters are in the vocabulary, each with and without the
    leading `##`, at most `size / 8` of them; a word with another character is [UNK].

    The result depends on the text alone: not on the order of the documents or of the words in
    memory. (Left to itself the library numbers the `##` characters in the order of a hash table,
    which differs from run to run, and breaks ties by these numbers.)

    Args:
        documents: list of strings.
        size: number of pieces, at least 100. Little text gives fewer.
        lowercase: whether to lower-case and to strip accents. Defaults to `True`.

    Returns:
        List of strings; the place is the id. The first five are [PAD], [UNK], [CLS], [SEP], [MASK].

    Raises:
        ValueError: if `size` is below 100, or the documents hold no text.
    """
    _check_size(size)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=lowercase, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    if lowercase:
        documents = [_case_folded(document) for document in documents]
    alphabet = _alphabet(documents, tokenizer.normalizer, size // _MAX_CHARACTER_SHARE)
    inner = [f"##{c}" for c in alphabet if _is_inside_words(c, tokenizer.pre_tokenizer)]
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        # known before training, hence numbered in this order
        special_tokens=[*WORDPIECE_SPECIAL, *alphabet, *inner],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    ids = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(ids, key=ids.get)


def train_sentencepiece_bpe(documents, size=32768, lowercase=True):
    """Trains a SentencePiece model of byte-pair encoding, with TUPE's special tokens.

    Ids 0 to 4 are `<s>`, `<pad>`, `</s>`, `<unk>`, `<mask>`. Text is normalised with NFKC (and
    case-folded). Characters that are not in the vocabulary are spelled as bytes, so nothing is
    lost; the 256 bytes are pieces of the vocabulary.

    Args:
        documents: list of strings.
        size: number of pieces. TUPE's is 32,768.
        lowercase: whether to fold case. Defaults to `True`.

    Returns:
        The model file's content, bytes.

    Raises:
        ValueError: if the documents hold no text, or `size` does not fit them.
    """
    _check_size(size)
    sentences = (sentence for document in documents for sentence in split_sentences(document))
    first = next(sentences, None)
    if first is None:
        raise ValueError(_no_text(documents))
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_chain(first, sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            control_symbols=["<mask>"],
            byte_fallback=True,
            character_coverage=0.9999,
            normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
            max_sentence_length=2**20,  # bytes; longer ones would be left out without a word
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(
            "`size` does not fit this text: there must be room for 261 special pieces and bytes "
            "and for every character, and enough text to find as many pieces. "
            f"Received: size={size} ({str(error).rsplit('] ', 1)[-1]})"
        ) from None
    return model.getvalue()


def _check_size(size):
    if size < _MIN_PIECES:
        raise ValueError(
            f"`size` must be at least {_MIN_PIECES} pieces; a few thousand are usual. "
            f"Received: size={size}"
        )


def _alphabet(documents, normalizer, limit):
    """The most frequent characters of the normalised text, in the order of their code points."""
    counts = collections.Counter()
    for document in documents:
        counts.update(normalizer.normalize_str(document))
    found = [item for item in counts.items() if not item[0].isspace()]
    if not found:
        raise ValueError(_no_text(documents))
    frequent = sorted(found, key=lambda item: (-item[1], item[0]))[:limit]
    return sorted(character for character, _ in frequent)


def _case_folded(text):
    """Unicode's NFKC_Casefold, as the op applies it: it turns a sharp s into ss, for instance."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _is_inside_words(character, pre_tokenizer):
    """Whether a character can be inside a word; punctuation, for one, is a word of its own."""
    return len(pre_tokenizer.pre_tokenize_str(f"a{character}a")) == 1


def _no_text(documents):
    return (
        "A vocabulary needs text to be trained on, and there is none. "
        f"Received: {len(documents)} documents"
    )


def _chain(first, rest):
    yield first
    yield from rest
