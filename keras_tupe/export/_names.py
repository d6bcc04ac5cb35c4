"""Names of what enters an export, and how the model gets its own inputs from them."""

import tensorflow as tf

HUB_NAMES = {
    "token_ids": "input_word_ids",
    "padding_mask": "input_mask",
    "segment_ids": "input_type_ids",
    "mask_positions": "masked_lm_positions",
}
ENCODER_INPUTS = ("token_ids", "padding_mask", "segment_ids")


def input_specs(names, length, hub=True):
    """Returns a `tf.TensorSpec`, int32 `(batch, length)`, per input, by name.

    Args:
        names: names of inputs as Keras has them.
        length: length in tokens, `None` for any.
        hub: whether the names are TF Hub's. Defaults to `True`.
    """
    lengths = {"mask_positions": None}
    return {
        HUB_NAMES[name] if hub else name: tf.TensorSpec(
            [None, lengths.get(name, length)], tf.int32, name=HUB_NAMES[name] if hub else name
        )
        for name in names
    }


def from_hub(inputs):
    """Returns inputs under the names of Keras from those of TF Hub."""
    return {name: inputs[hub] for name, hub in HUB_NAMES.items() if hub in inputs}
