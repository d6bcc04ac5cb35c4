"""Pairs of texts, a source and a target, as two rows each.

Of each function `tokenizer` is one of `keras_tupe.tokenizers`, and `sources` and `targets` are
batches of strings `(batch,)`; `source_length` and `target_length` are those of the rows, and
`starts_with_end` says whether targets have the end token before their start token, as in BART.
"""

import tensorflow as tf

from keras_tupe.tokenizers.pack_text import framed, next_tokens, pack_text, refuse


def pair_inputs(tokenizer, sources, targets, *, source_length, target_length, starts_with_end):
    """Returns model inputs of pairs, a dictionary, and of each target's tokens the one after it.

    They are `encoder_token_ids`, `encoder_padding_mask`, `decoder_token_ids` and
    `decoder_padding_mask`; then come the labels, int32, and the weights, float32.
    """
    rows = _targets(tokenizer, targets, target_length + 1, starts_with_end)
    *rows, labels, weights = next_tokens(*rows)
    return {**_sources(tokenizer, sources, source_length), **_decoder(*rows)}, labels, weights


def generation_inputs(
    tokenizer, sources, beginnings=None, *, source_length, target_length, starts_with_end
):
    """Returns model inputs of sources, and of the texts with which their targets begin, if any.

    In eager calls a source without a word, or longer than its row, and a beginning that leaves no
    room for a token are a `ValueError`.
    """
    if beginnings is None:
        beginnings = tf.fill(tf.shape(sources), "")
    if tf.executing_eagerly():
        refuse(sources, *source_problems(tokenizer, sources, source_length))
        sentence = (
            f"What a target begins with must leave room for a token in its row of {target_length}, "
            "special ones included. Shorten it, or make longer rows."
        )
        most = target_length - starts_with_end - 1
        refuse(beginnings, (_target_lengths(tokenizer, beginnings) > most, sentence))
    rows = _targets(tokenizer, beginnings, target_length, starts_with_end, add_end=False)
    return {**_sources(tokenizer, sources, source_length), **_decoder(*rows)}


def whole_pairs(tokenizer, sources, targets, **settings):
    """As `pair_inputs`, where a source without a word, and what would be cut, is a `ValueError`."""
    refuse(sources, *source_problems(tokenizer, sources, settings["source_length"]))
    most = settings["target_length"] - settings["starts_with_end"]
    refuse(targets, *target_problems(tokenizer, targets, most))
    return pair_inputs(tokenizer, sources, targets, **settings)


def source_problems(tokenizer, sources, source_length):
    """Returns what may be wrong with sources: pairs of a boolean `(batch,)` and a sentence."""
    ids = tokenizer.tokenize(sources)
    lengths = framed(tokenizer, ids).row_lengths()
    return (
        (tf.equal(ids.row_lengths(), 0), "A source must have at least one token. Write a word."),
        (
            lengths > source_length,
            f"A source must have at most {source_length} tokens, special ones included. Shorten "
            "it, or make longer rows.",
        ),
    )


def target_problems(tokenizer, targets, most):
    """As `source_problems`, of targets to score; `most` tokens count the start token."""
    sentence = (
        f"A target must have at most {most} tokens, the start token included. Shorten it, or make "
        "longer rows."
    )
    return ((_target_lengths(tokenizer, targets) > most, sentence),)


def _target_lengths(tokenizer, targets):
    return framed(tokenizer, tokenizer.tokenize(targets), add_end_token=False).row_lengths()


def _sources(tokenizer, sources, length):
    ids, mask = pack_text(tokenizer, tokenizer.tokenize(sources), length)
    return {"encoder_token_ids": ids, "encoder_padding_mask": mask}


def _decoder(ids, mask):
    return {"decoder_token_ids": ids, "decoder_padding_mask": mask}


def _targets(tokenizer, targets, length, starts_with_end, add_end=True):
    ids = tokenizer.tokenize(targets)
    if not starts_with_end:
        return pack_text(tokenizer, ids, length, add_end_token=add_end)
    ids, mask = pack_text(tokenizer, ids, length - 1, add_end_token=add_end)
    first = tf.fill([tf.shape(ids)[0], 1], tokenizer.end_id)
    return tf.concat([first, ids], axis=1), tf.concat([tf.ones_like(first), mask], axis=1)
