"""Checks of what a causal language model is made of and is given, before anything is generated."""

import os
import pathlib

import keras
import numpy as np

from keras_tupe._json_file import read_json_object
from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.trunk.inputs import check_inputs, check_range

FEWEST_COLUMNS = 16  # of the tokens that are read at once before the first new one


def check_causal(backbone):
    """Refuses a backbone whose tokens see later ones, that takes segments, or factorises.

    Args:
        backbone: a `TupeBackbone`.

    Raises:
        ValueError: if it is refused.
    """
    if not backbone.is_causal:
        raise ValueError(
            "A causal language model needs a backbone whose tokens do not see later ones. Make and "
            "train one with attention_pattern='causal', or a pattern with the option causal=True; "
            "a masked language model cannot generate. Received: a backbone with "
            f"attention_pattern={backbone.attention_pattern!r}"
        )
    if backbone.num_segments:
        raise ValueError(
            "A causal language model has one text per row and takes no `segment_ids`. Make the "
            f"backbone with num_segments=0. Received: num_segments={backbone.num_segments}"
        )
    if backbone.embedding_dim is not None:
        raise ValueError(
            "A causal language model takes its logits from the token embedding, whose vectors must "
            "be as wide as the hidden states. Make the backbone with embedding_dim=None. Received: "
            f"embedding_dim={backbone.embedding_dim}"
        )


def check_position_terms(config):
    """Refuses a method whose terms for all blocks cannot be made before the words are there.

    Args:
        config: a `TrunkConfig`.

    Raises:
        ValueError: if its record says that it `reads_words`.
    """
    if config.method.reads_words:
        raise ValueError(
            "Text is generated with position terms that are made once, before the words, and those "
            f"of the method {config.position!r} look at the words. Put what depends on them into "
            f"the attention layer. Received: position={config.position!r}, whose record says "
            "reads_words=True"
        )


def check_preset(preset, cls):
    """Refuses the preset of another language model, whose head would be left out silently.

    Args:
        preset: folder, or whatever else KerasHub takes.
        cls: the class that is to be loaded.

    Raises:
        ValueError: if it is the preset of a masked language model.
    """
    path = pathlib.Path(os.fspath(preset)) / "task.json"
    if not path.is_file():
        return
    try:
        name = read_json_object(path).get("class_name")
    except ValueError:
        return  # told with more words where it is loaded
    if isinstance(name, str) and "MaskedLM" in name:
        raise ValueError(
            f"`{cls.__name__}` generates with a causal language model, and this is the preset of a "
            "masked one. Train one with the objective 'causal_lm'. "
            f"Received: {os.fspath(preset)!r}, of a {name}"
        )


def check_prompts(model, inputs, max_length):
    """Checks the arguments of `generate`, but for texts, which the preprocessor checks.

    Args:
        model: a `TupeCausalLM`.
        inputs, max_length: as of `TupeCausalLM.generate`.

    Raises:
        ValueError, TypeError: as there.
    """
    backbone = model.backbone
    if max_length is not None:
        check_positive_integers(max_length=max_length)
    is_arrays = model.preprocessor is None and isinstance(inputs, dict)
    if is_arrays:
        check_inputs(inputs, ["token_ids", "padding_mask"])
        max_length = inputs["token_ids"].shape[1]
    if backbone.has_length_limit and max_length and max_length > backbone.max_sequence_length:
        raise ValueError(
            f"The position tables of {backbone.position!r} end at max_sequence_length="
            f"{backbone.max_sequence_length} tokens, prompt included. Choose a smaller "
            f"`max_length`, or make the model longer with `extend_positions`. Received: max_length="
            f"{max_length}"
        )
    if is_arrays:
        ids, mask = (keras.ops.convert_to_numpy(inputs[x]) for x in ("token_ids", "padding_mask"))
        check_range("token_ids", ids, backbone.vocabulary_size)
        check_rows("padding_mask", mask.astype(bool))


def check_rows(name, mask):
    """Refuses prompts that do not stand on the left, have no token, or no room after them.

    Args:
        name: name of the mask, for the message.
        mask: booleans `(batch, length)`, NumPy.

    Raises:
        ValueError: if there are such.
    """
    lengths = mask.sum(axis=1)
    if not np.array_equal(mask, np.arange(mask.shape[1]) < lengths[:, None]):
        row = int((mask != (np.arange(mask.shape[1]) < lengths[:, None])).any(axis=1).argmax())
        raise ValueError(
            "The tokens of a prompt must stand on the left, and padding on the right: token i is "
            f"at position i. Move them to the left. Received: a `{name}` with row "
            f"{row} = {mask[row].astype(int).tolist()!r:.80}"
        )
    for is_wrong, expected in (
        (lengths < 1, "have at least one token, from which the text goes on"),
        (lengths >= mask.shape[1], "leave room for a token after it"),
    ):
        if is_wrong.any():
            row = int(is_wrong.argmax())
            raise ValueError(
                f"A prompt must {expected}. Received: row {row} of `{name}` with "
                f"{lengths[row]} tokens of {mask.shape[1]}"
            )


def beginning(inputs, backbone):
    """Returns the first columns of the prompts: as many as the shortest has tokens, rounded up.

    Args:
        inputs: dictionary of `token_ids` and `padding_mask`, `(batch, length)`, not symbolic.
        backbone: the `TupeBackbone`, whose global tokens are read at once too.

    Raises:
        ValueError: if the rows have fewer tokens than there are global ones.
    """
    backbone.config.check_length(inputs["token_ids"].shape[1])
    shortest = int(keras.ops.convert_to_numpy(inputs["padding_mask"]).astype(bool).sum(1).min())
    columns, needed = FEWEST_COLUMNS, backbone.pattern_options.get("num_global", 0)
    while columns < max(shortest, needed):
        columns *= 2
    return inputs["token_ids"][:, : min(columns, inputs["token_ids"].shape[1])]
