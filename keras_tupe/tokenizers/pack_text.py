"""Tokenized texts between special tokens, as rows of fixed length."""

import tensorflow as tf


def pack_text(tokenizer, ids, sequence_length, add_start_token=True, add_end_token=True):
    """Frames texts with special tokens, cuts what is too long, pads what is short on the right.

    The rows are those of `pack_segments` of one text, for models that predict the next token: a
    text that is cut has no end token, since it does not end there.

    Args:
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
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
    return padded(tokenizer, rows, sequence_length)


def framed(tokenizer, ids, add_start_token=True, add_end_token=True):
    """Returns texts with special tokens, ragged int32 `(batch, (tokens))`; `ids` may be a pair."""
    segments = ids if isinstance(ids, tuple) else (ids,)

    def columns(tokens):
        rows = tf.tile(tf.constant([tokens], tf.int32), [segments[0].nrows(), 1])
        return tf.RaggedTensor.from_tensor(rows)

    parts = [columns([tokenizer.start_id])] if add_start_token else []
    for segment in segments[:-1]:
        parts += [segment, columns(tokenizer.separator_ids)]
    parts += [segments[-1], *([columns([tokenizer.end_id])] if add_end_token else [])]
    return tf.concat(parts, axis=1) if len(parts) > 1 else parts[0]


def padded(tokenizer, rows, sequence_length):
    """Returns ragged rows as ids and mask, `(batch, sequence_length)`, which may be a tensor."""
    is_known = not tf.is_tensor(sequence_length)
    shape = [None, sequence_length] if is_known else tf.stack([-1, sequence_length])
    # Not bool: Keras sums what it hands to replicas, which TensorFlow cannot do with booleans.
    mask = tf.ones_like(rows).to_tensor(0, shape=shape)
    return rows.to_tensor(tokenizer.pad_id, shape=shape), mask


def next_tokens(token_ids, mask):
    """Returns ids and mask without the last column, of each token the one after it, and weights."""
    return token_ids[:, :-1], mask[:, :-1], token_ids[:, 1:], tf.cast(mask[:, 1:], tf.float32)


def refuse(texts, *problems):
    """Raises `ValueError` for the first problem, a boolean `(batch,)` and a sentence, of texts."""
    for is_wrong, sentence in problems:
        if bool(tf.reduce_any(is_wrong)):
            text = texts.numpy()[int(tf.argmax(tf.cast(is_wrong, tf.int32)))]
            raise ValueError(f"{sentence} Received: {text.decode(errors='replace')!r:.80}")


def prompt_problems(ids, lengths, sequence_length):
    """Returns what may be wrong with prompts: pairs of a boolean `(batch,)` and a sentence.

    `ids` are the prompts without special tokens, ragged; `lengths` count these too, `(batch,)`.
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
