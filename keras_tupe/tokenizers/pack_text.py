"""A tokenized text as one row of fixed length, for models that predict the next token."""

import tensorflow as tf


def pack_text(tokenizer, ids, sequence_length, add_start_token=True, add_end_token=True):
    """Frames texts with special tokens, cuts what is too long, pads what is short on the right.

    The rows are, by the kind of vocabulary,

        WordPiece:     [CLS] A [SEP]
        SentencePiece: <s> A </s>

    A text that is cut has no end token: it does not end there.

    Args:
        tokenizer: a `WordPiece` or `SentencePieceBpe`.
        ids: ragged int32 tensor of shape (batch, (pieces)).
        sequence_length: length of the rows, in tokens, special ones included.
        add_start_token: whether the start token, [CLS] or <s>, comes first. Defaults to `True`.
        add_end_token: whether the end token, [SEP] or </s>, comes last. Defaults to `True`.

    Returns:
        Tuple of two int32 tensors of shape (batch, sequence_length): token ids; padding mask, 1 for
        tokens.

    Example:
        >>> from keras_tupe.tokenizers import WordPiece
        >>> tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> pack_text(tokenizer, tokenizer.tokenize(["a b", "b"]), 4)[0].numpy().tolist()
        [[2, 5, 6, 3], [2, 6, 3, 0]]
    """
    rows = framed(tokenizer, ids, add_start_token, add_end_token)
    shape = [None, sequence_length]
    mask = tf.ones_like(rows).to_tensor(0, shape=shape)
    return rows.to_tensor(tokenizer.pad_id, shape=shape), mask


def framed(tokenizer, ids, add_start_token, add_end_token):
    """Returns the texts with special tokens, ragged int32 `(batch, (tokens))`.

    Args:
        tokenizer, ids, add_start_token, add_end_token: as of `pack_text`.
    """

    def column(number):
        return tf.RaggedTensor.from_tensor(tf.fill([ids.nrows(), 1], number))

    parts = [column(tokenizer.start_id)] if add_start_token else []
    parts += [ids, *([column(tokenizer.end_id)] if add_end_token else [])]
    return tf.concat(parts, axis=1) if len(parts) > 1 else ids


def prompt_problems(ids, lengths, sequence_length):
    """Returns what may be wrong with prompts: pairs of a boolean `(batch,)` and a sentence.

    Args:
        ids: ragged int32 tensor of shape (batch, (pieces)), the prompts without special tokens.
        lengths: number of their tokens with the special ones, int `(batch,)`.
        sequence_length: length of the rows that they begin, an integer.
    """
    return (
        (
            tf.equal(ids.row_lengths(), 0),
            "A prompt must have at least one token, from which the text goes on. Write a word.",
        ),
        (
            lengths >= tf.cast(sequence_length, lengths.dtype),
            "A prompt must be shorter than `max_length`, which counts its tokens and the new ones, "
            f"special ones included, and is {sequence_length} here. Shorten the prompt, or make "
            "`max_length` larger.",
        ),
    )
