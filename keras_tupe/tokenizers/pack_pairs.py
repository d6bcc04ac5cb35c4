"""Pairs of texts, a source and a target, as two rows each."""

import tensorflow as tf

from keras_tupe.tokenizers.keras_hub_calls import as_batch, finished
from keras_tupe.tokenizers.pack_text import framed, pack_text


def pair_inputs(tokenizer, sources, targets, *, source_length, target_length, starts_with_end):
    """Model inputs of pairs, and of each target's tokens the one after it.

    Args:
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
        sources: string, or batch of strings.
        targets: the same.
        source_length, target_length: length of the rows.
        starts_with_end: whether targets have the end token before their start token, as in BART.

    Returns:
        Tuple of a dictionary (`encoder_token_ids`, `encoder_padding_mask`, `decoder_token_ids`,
        `decoder_padding_mask`), the labels int32 and the weights float32.

    Raises:
        ValueError: if there are not as many sources as targets, where the numbers are known.
    """
    sources, targets, is_batch = _batches(sources, targets)
    ids, mask = _targets(tokenizer, targets, target_length + 1, starts_with_end)
    rows = {
        **_sources(tokenizer, sources, source_length),
        "decoder_token_ids": ids[:, :-1],
        "decoder_padding_mask": mask[:, :-1],
        "y": ids[:, 1:],
        "w": tf.cast(mask[:, 1:], tf.float32),
    }
    rows = finished(rows, is_batch)
    return rows, rows.pop("y"), rows.pop("w")


def generation_inputs(
    tokenizer, sources, beginnings=None, *, source_length, target_length, starts_with_end
):
    """Model inputs of sources, and the tokens with which their targets begin.

    Args:
        tokenizer, source_length, target_length, starts_with_end: as of `pair_inputs`.
        sources: string, or batch of strings.
        beginnings: texts with which targets begin, as many. Defaults to none.

    Returns:
        Dictionary, as of `pair_inputs`.

    Raises:
        ValueError: if there are not as many beginnings as sources; and, in eager calls, for a
            source without a word or longer than its row, and for a target without room for a token.
    """
    if beginnings is None:
        sources, is_batch = as_batch(sources)
        beginnings = tf.fill(tf.shape(sources), "")
    else:
        sources, beginnings, is_batch = _batches(sources, beginnings)
    ids, mask = _targets(tokenizer, beginnings, target_length, starts_with_end, add_end=False)
    if tf.executing_eagerly():
        check_sources(tokenizer, sources, source_length)
        sentence = (
            f"What a target begins with must leave room for a token in its row of {target_length}, "
            "special ones included. Shorten it, or make longer rows."
        )
        most = target_length - starts_with_end - 1
        _refuse(_target_lengths(tokenizer, beginnings) > most, beginnings, sentence)
    rows = {
        **_sources(tokenizer, sources, source_length),
        "decoder_token_ids": ids,
        "decoder_padding_mask": mask,
    }
    return finished(rows, is_batch)


def whole_pairs(tokenizer, sources, targets, **settings):
    """As `pair_inputs` of batches, where nothing is cut.

    Raises:
        ValueError: as `pair_inputs`, and for a source without a word, or a source or target longer
            than its row.
    """
    sources, targets, _ = _batches(sources, targets)
    check_sources(tokenizer, sources, settings["source_length"])
    most = settings["target_length"] - settings["starts_with_end"]
    for is_wrong, sentence in target_problems(tokenizer, targets, most):
        _refuse(is_wrong, targets, sentence)
    return pair_inputs(tokenizer, sources, targets, **settings)


def source_problems(tokenizer, sources, source_length):
    """Returns what may be wrong with sources: pairs of a boolean `(batch,)` and a sentence.

    Args:
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
        sources: strings `(batch,)`.
        source_length: length of their rows, an integer.
    """
    ids = tokenizer.tokenize(sources)
    lengths = framed(tokenizer, ids, True, True).row_lengths()
    return (
        (tf.equal(ids.row_lengths(), 0), "A source must have at least one token. Write a word."),
        (
            lengths > source_length,
            f"A source must have at most {source_length} tokens, special ones included. Shorten "
            "it, or make longer rows.",
        ),
    )


def target_problems(tokenizer, targets, most):
    """Returns what may be wrong with targets that are to be scored; as `source_problems`.

    Args:
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
        targets: strings `(batch,)`.
        most: number of tokens of the longest, the start token included, an integer.
    """
    sentence = (
        f"A target must have at most {most} tokens, the start token included. Shorten it, or make "
        "longer rows."
    )
    return ((_target_lengths(tokenizer, targets) > most, sentence),)


def check_sources(tokenizer, sources, source_length):
    """Raises `ValueError` for what `source_problems` finds, with the text."""
    for is_wrong, sentence in source_problems(tokenizer, sources, source_length):
        _refuse(is_wrong, sources, sentence)


def _target_lengths(tokenizer, targets):
    """Returns the number of tokens `(batch,)` of targets with a start token, without an end."""
    return framed(tokenizer, tokenizer.tokenize(targets), True, False).row_lengths()


def _batches(sources, targets):
    """Returns both as batches of strings, and whether the sources were one."""
    (sources, is_batch), (targets, _) = as_batch(sources), as_batch(targets)
    if not sources.shape.is_compatible_with(targets.shape):
        raise ValueError(
            "There must be as many sources as targets: one text of each for each pair. Received: "
            f"{sources.shape[0]} sources and {targets.shape[0]} targets"
        )
    return sources, targets, is_batch


def _refuse(is_wrong, texts, sentence):
    if bool(tf.reduce_any(is_wrong)):
        text = texts.numpy()[int(tf.argmax(tf.cast(is_wrong, tf.int32)))]
        raise ValueError(f"{sentence} Received: {text.decode(errors='replace')!r:.80}")


def _sources(tokenizer, sources, length):
    ids, mask = pack_text(tokenizer, tokenizer.tokenize(sources), length)
    return {"encoder_token_ids": ids, "encoder_padding_mask": mask}


def _targets(tokenizer, targets, length, starts_with_end, add_end=True):
    ids = tokenizer.tokenize(targets)
    if not starts_with_end:
        return pack_text(tokenizer, ids, length, add_end_token=add_end)
    ids, mask = pack_text(tokenizer, ids, length - 1, add_end_token=add_end)
    first = tf.fill([tf.shape(ids)[0], 1], tokenizer.end_id)
    return tf.concat([first, ids], axis=1), tf.concat([tf.ones_like(first), mask], axis=1)
