"""Checks of what a model of pairs is made of and is given, before anything is generated."""

import keras

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models._prompts import check_rows
from keras_tupe.models.seq2seq.backbone import SIDES, TupeSeq2SeqBackbone
from keras_tupe.trunk.inputs import check_inputs, check_range


def check_backbone(backbone):
    """Raises `TypeError` for a backbone that has no decoder beside its encoder."""
    if not isinstance(backbone, TupeSeq2SeqBackbone):
        raise TypeError(
            f"A model of pairs needs a `TupeSeq2SeqBackbone`. Received: {type(backbone).__name__}"
        )


def check_preprocessor(preprocessor, backbone):
    """Refuses a preprocessor whose rows do not fit a backbone.

    Args:
        preprocessor: a `TupeSeq2SeqLMPreprocessor`, or `None`.
        backbone: a `TupeSeq2SeqBackbone`.

    Raises:
        ValueError: if its rows are longer than position tables, or its vocabulary is larger, but
            for the mask, which no text has.
        TypeError: if it makes no pairs.
    """
    if preprocessor is None:
        return
    if not all(hasattr(preprocessor, f"{side}_sequence_length") for side in SIDES):
        raise TypeError(
            "A model of pairs needs a `TupeSeq2SeqLMPreprocessor`, whose rows are pairs too. "
            f"Received: {type(preprocessor).__name__}"
        )
    limit = backbone.max_sequence_length
    for side in SIDES:
        length = getattr(preprocessor, f"{side}_sequence_length")
        if backbone.has_length_limit and length > limit:
            raise ValueError(
                f"The preprocessor's rows must fit into the backbone's max_sequence_length={limit}."
                f" Make it with `{side}_sequence_length={limit}` or less. Received: "
                f"{side}_sequence_length={length}"
            )
    tokenizer = preprocessor.tokenizer
    if not tokenizer.has_vocabulary:
        return
    size = tokenizer.vocabulary_size()
    if size - (tokenizer.mask_token_id == size - 1) > backbone.vocabulary_size:
        raise ValueError(
            "The tokenizer's vocabulary must not be larger than the backbone's, which has "
            f"{backbone.vocabulary_size} token vectors. Received: a tokenizer of "
            f"{size} pieces"
        )


def check_sources(model, inputs, max_length, strip_prompt):
    """Checks the arguments of `generate`, but for texts, which the preprocessor checks.

    Args:
        model: a `TupeSeq2SeqLM`.
        inputs, max_length, strip_prompt: as of `TupeSeq2SeqLM.generate`.

    Raises:
        ValueError, TypeError: as there.
    """
    if strip_prompt:
        raise ValueError(
            "Targets are returned whole, with what they begin with. Leave `strip_prompt` out. "
            f"Received: strip_prompt={strip_prompt!r}"
        )
    if isinstance(inputs, list | tuple) and not inputs:
        raise ValueError("There must be at least one source. Received: no text")
    backbone = model.backbone
    if max_length is not None:
        check_positive_integers(max_length=max_length)
    is_arrays = model.preprocessor is None and isinstance(inputs, dict)
    if is_arrays:
        check_inputs(inputs, [f"{x}_{y}" for x in SIDES for y in ("token_ids", "padding_mask")])
        max_length = inputs["decoder_token_ids"].shape[1]
    if backbone.has_length_limit and max_length and max_length > backbone.max_sequence_length:
        raise ValueError(
            f"The position tables of {backbone.position!r} end at max_sequence_length="
            f"{backbone.max_sequence_length} tokens of a target. Choose a smaller `max_length`. "
            f"Received: max_length={max_length}"
        )
    if not is_arrays:
        return
    length = inputs["encoder_token_ids"].shape[1]
    if backbone.has_length_limit and length > backbone.max_sequence_length:
        raise ValueError(
            f"The position tables of {backbone.position!r} end at max_sequence_length="
            f"{backbone.max_sequence_length} tokens of a source. Shorten the sources. Received: a "
            f"length of {length}"
        )
    arrays = {name: keras.ops.convert_to_numpy(value) for name, value in inputs.items()}
    for side in SIDES:
        check_range(f"{side}_token_ids", arrays[f"{side}_token_ids"], backbone.vocabulary_size)
    check_rows("decoder_padding_mask", arrays["decoder_padding_mask"].astype(bool))
    has_tokens = arrays["encoder_padding_mask"].astype(bool).any(axis=1)
    if not has_tokens.all():
        raise ValueError(
            "A source must have at least one token. Received: no token in row "
            f"{int(has_tokens.argmin())} of `encoder_padding_mask`"
        )


def first_columns(padding_mask):
    """Returns how many columns hold all that targets begin with, but what one of them has more.

    Args:
        padding_mask: booleans `(batch, length)`, not symbolic.

    Returns:
        A power of two, so that beginnings of about one length share one compilation, at most the
        length.
    """
    shortest = int(keras.ops.convert_to_numpy(padding_mask).astype(bool).sum(axis=1).min())
    return min(2 ** max(shortest - 1, 0).bit_length(), padding_mask.shape[1])
