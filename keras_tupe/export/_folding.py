"""An encoder whose position terms are constants."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_tupe.layers._exporting import position_constants

ROUNDING = 1e-5  # of float32 products of other shapes, as a share of the largest value


class FoldedEncoder:
    """Answers as a `TupeBackbone` does, with what does not depend on the words computed before.

    Held as constants are: vectors that `position_embedding` adds, the bias of `position_bias`,
    what `shared_positions` gives to all layers, and the `position_logits` of attention
    layers that have them. The weights behind them do not occur in a graph that is traced
    from this object; all other weights do, as variables. The constants are those of the
    moment: make a new object after training. A layer of the registry that does look at the words
    is found out, and is computed in the graph.

    Args:
        backbone: a `TupeBackbone`.
        length: longest sequence, in tokens.
        dynamic_length: whether shorter sequences are taken as well. Then `shared_positions` is
            computed in the graph, and so is every other term of a method whose term for n positions
            is not the beginning of that for `length` positions.

    Call arguments:
        inputs: dictionary of the backbone's inputs, int32 `(batch, length)`; others are ignored.

    Returns:
        The backbone's outputs, in inference mode.
    """

    def __init__(self, backbone, length, dynamic_length=False):
        self.length = length
        self.dynamic_length = dynamic_length
        self._names = [tensor.name for tensor in backbone.inputs]
        layers = {layer.name: layer for layer in backbone.layers}
        self._nothing = np.zeros((1, length, backbone.hidden_dim), "float32")
        self._constants = {}  # tensors of the whole length, by the name under which they are fed
        fed = dict(backbone.input)
        self._before_positions = None
        if "position_embedding" in layers and self._adds(layers["position_embedding"]):
            layer = layers["position_embedding"]
            self._before_positions = keras.Function(backbone.input, layer.input)
            self._constants["position_embedding"] = self._of(layer)
            fed = {"padding_mask": fed["padding_mask"], "position_embedding": layer.output}
        if "position_bias" in layers and self._is_constant(layers["position_bias"]):
            layer = layers["position_bias"]
            whole = self._of(layer)
            handed = keras.tree.flatten(layer.output)
            if len(handed) > 1:  # by its parts; the bias itself is the first of them
                handed = {**layer(self._hidden_states(layer), as_parts=True), "bias": whole}
                whole = keras.tree.flatten(handed)
            for key, value in _flat(whole).items():
                self._constants[f"position_bias{key}"] = value
            fed |= {f"position_bias{key}": x for key, x in _flat(layer.output).items()}
        if "shared_positions" in layers and self._is_constant(layers["shared_positions"]):
            layer = layers["shared_positions"]
            for key, value in _flat(self._of(layer)).items():
                self._constants[f"shared_positions{key}"] = value
            fed |= {f"shared_positions{key}": x for key, x in _flat(layer.output).items()}
        self._rest = keras.Function(fed, backbone.output)
        shared = self._of(layers["shared_positions"]) if "shared_positions" in layers else None
        self._logits = {}  # of attention layers, (num_heads, length, length)
        for block in dict.fromkeys(backbone.blocks):
            attention = block.attention
            if hasattr(attention, "position_logits"):
                self._logits[attention] = attention.position_logits(
                    self._nothing, shared_positions=shared
                )

    def __call__(self, inputs):
        inputs = {name: inputs[name] for name in self._names}
        length = self._checked_length(inputs["token_ids"])
        fed = {name: self._cut(name, value, length) for name, value in self._constants.items()}
        if self._before_positions is not None:
            x = self._before_positions(inputs)
            fed["position_embedding"] = x + fed["position_embedding"]
            inputs = {"padding_mask": inputs["padding_mask"]}
        logits = {layer: self._cut("", x, length) for layer, x in self._logits.items()}
        with position_constants(logits):
            return self._rest({**inputs, **fed})

    def _checked_length(self, token_ids):
        if not self.dynamic_length:
            return self.length
        length = tf.shape(token_ids)[1]
        tf.debugging.assert_less_equal(length, self.length, too_long(self.length))
        return length

    def _cut(self, name, value, length):
        if not self.dynamic_length:
            return value
        if name == "position_embedding":
            return value[:, :length]
        if name.startswith("position_bias") and len(value.shape) != 4:
            return value  # a part of the bias, which is not used where the bias itself is there
        return value[..., :length, :length]

    def _of(self, layer, length=None):
        """Returns what a layer answers where there are no words."""
        return layer(self._hidden_states(layer, length))

    def _hidden_states(self, layer, length=None):
        return ops.convert_to_tensor(self._nothing[:, :length], layer.compute_dtype)

    def _words(self, layer):
        """Returns hidden states that are not zero."""
        words = np.random.default_rng(0).normal(size=self._nothing.shape)
        return ops.convert_to_tensor(words, layer.compute_dtype)

    def _adds(self, layer):
        """Returns whether a layer adds the same vectors to whatever it gets."""
        words = self._words(layer)
        return _equal(layer(words), words + self._of(layer)) and self._begins(layer)

    def _is_constant(self, layer):
        """Returns whether a layer answers the same whatever the words are."""
        if self.dynamic_length and layer.name == "shared_positions":
            return False
        return _equal(layer(self._words(layer)), self._of(layer)) and self._begins(layer)

    def _begins(self, layer):
        """Returns whether the term of shorter sequences is the beginning of that of long ones."""
        if not self.dynamic_length:
            return True
        whole = ops.convert_to_numpy(self._of(layer))
        for length in {1, (self.length + 1) // 2, max(1, self.length - 1)}:
            part = ops.convert_to_numpy(self._of(layer, length))
            begin = self._cut(layer.name, whole, length)
            if part.shape != begin.shape or not _equal(part, begin):
                return False
        return True


def _equal(ours, theirs):
    """Returns whether two structures of tensors are the same but for rounding."""
    pairs = zip(keras.tree.flatten(ours), keras.tree.flatten(theirs), strict=True)
    pairs = [(ops.convert_to_numpy(a), ops.convert_to_numpy(b)) for a, b in pairs]
    return all(
        np.abs(a - b).max(initial=0) <= ROUNDING * max(1, np.abs(b).max(initial=0))
        for a, b in pairs
    )


def too_long(length):
    """Returns the message for a sequence above a model's longest."""
    return (
        f"The model has positions for at most {length} tokens. Truncate the input, or export the "
        "model with a larger length"
    )


def _flat(structure):
    """Returns the tensors of a tensor, tuple or dictionary, by a suffix for their names."""
    return {f"/{index}": value for index, value in enumerate(keras.tree.flatten(structure))}
