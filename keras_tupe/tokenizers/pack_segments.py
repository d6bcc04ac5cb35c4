"""One or two tokenized texts as one row of fixed length."""

import tensorflow as tf
import tensorflow_text

from keras_tupe.tokenizers.pack_text import framed, padded

_TRIMMERS = {
    "round_robin": tensorflow_text.RoundRobinTrimmer,
    "waterfall": tensorflow_text.WaterfallTrimmer,
}


def pack_segments(
    tokenizer, segments, sequence_length, truncate="round_robin", add_start_token=True
):
    """Frames texts with special tokens, cuts what is too long, pads what is short.

    The rows are, by the kind of vocabulary,

        WordPiece:     [CLS] A [SEP]      [CLS] A [SEP] B [SEP]
        SentencePiece: <s> A </s>         <s> A </s> </s> B </s>
        byte pairs:    as SentencePiece; GPT-2's <|endoftext|> stands for <s> and </s>, and
                       once between A and B

    **Text that does not fit is dropped silently from the end.**

    Args:
        tokenizer: a `WordPiece`, `SentencePieceBpe` or `ByteLevelBpe`.
        segments: tuple of one or two ragged int32 tensors of shape (batch, (pieces)).
        sequence_length: length of the rows, in tokens, special ones included; an integer, or an
            int32 scalar in a graph.
        truncate: `"round_robin"` takes tokens from the two texts in turn until the row is full;
            `"waterfall"` fills it with the first text first.
        add_start_token: whether the start token, [CLS] or <s>, comes first. Defaults to `True`.

    Returns:
        Tuple of three int32 tensors of shape (batch, sequence_length): token ids; padding mask,
        1 for tokens; segment ids, 1 for B and the end token behind it.

    Raises:
        ValueError: if there are not one or two segments of one batch size, `truncate` is unknown,
            or the row has no room for a piece of each text (`InvalidArgumentError` if the
            length is a tensor).

    Example:
        >>> from keras_tupe.tokenizers import WordPiece
        >>> tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"])
        >>> rows = pack_segments(tokenizer, (tokenizer.tokenize(["a b", "b"]),), 5)
        >>> rows[0].numpy().tolist()
        [[2, 5, 6, 3, 0], [2, 6, 3, 0, 0]]
    """
    if truncate not in _TRIMMERS:
        raise ValueError(
            f"`truncate` must be one of {sorted(_TRIMMERS)}. Received: truncate={truncate!r}"
        )
    if len(segments) not in (1, 2):
        raise ValueError(
            "A row holds one text or a pair of texts. Pass a batch of strings or a tuple of two "
            f"batches. Received: {len(segments)} batches"
        )
    batches = {segment.shape[0] for segment in segments} - {None}
    if len(batches) > 1:
        raise ValueError(
            "The two batches of a pair must have one size. "
            f"Received: batches of {' and '.join(str(s.shape[0]) for s in segments)} texts"
        )
    special = add_start_token + 1 + len(tokenizer.separator_ids) * (len(segments) - 1)
    room = sequence_length - special
    problem = (
        f"`sequence_length` must leave room for {special} special tokens and a piece of each of "
        f"{len(segments)} texts."
    )
    if tf.is_tensor(room):
        tf.debugging.assert_greater_equal(room, len(segments), problem)
    elif room < len(segments):
        raise ValueError(f"{problem} Received: sequence_length={sequence_length}")
    segments = tuple(_TRIMMERS[truncate](room).trim(list(segments)))
    rows = framed(tokenizer, segments, add_start_token)
    token_ids, padding_mask = padded(tokenizer, rows, sequence_length)
    places = tf.range(sequence_length)[tf.newaxis]
    # Where B begins.
    second = segments[0].row_lengths() + add_start_token + len(tokenizer.separator_ids)
    is_second = tf.cast(places >= tf.cast(second, tf.int32)[:, tf.newaxis], tf.int32)
    return token_ids, padding_mask, is_second * padding_mask
