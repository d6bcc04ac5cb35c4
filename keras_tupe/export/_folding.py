"""An encoder whose position terms are constants."""

import copy

import numpy as np
import tensorflow as tf
from keras import ops

from keras_tupe.layers._tracing import traced_for, tracing_for

ROUNDING = 1e-5  # of float32 products of other shapes, as a share of the largest value


class FoldedEncoder:
    """Answers as a `TupeBackbone` does, with what does not depend on the words computed before.

    Held as constants are the vectors that a method adds to embeddings, its bias and what it shares
    with all layers, unless its record says `reads_words`. The weights behind them do not occur in
    a graph that is traced from this object; all other weights do, as variables. The constants are
    those of the moment: make a new object after training.

    Args:
        backbone: a `TupeBackbone`.
        length: longest sequence, in tokens.
        dynamic_length: whether shorter sequences are taken as well. Then what layers share is
            computed in the graph, and so is every other term of a method whose term for n positions
            is not the beginning of that for `length` positions.

    Call arguments:
        inputs: dictionary of the backbone's inputs, int32 `(batch, length)`; others are ignored.

    Returns:
        The backbone's outputs, in inference mode.
    """

    def __init__(self, backbone, length, dynamic_length=False):
        self.backbone, self.length, self.dynamic_length = backbone, length, dynamic_length
        names = ["position_embedding", "position_bias"]
        names += [] if dynamic_length else ["shared_positions"]
        if backbone.config.method.reads_words:
            names = []
        found = {name: self._of(name, length) for name in names if getattr(backbone.trunk, name)}
        self.constants = {name: value for name, value in found.items() if self._begins(name, value)}

    def __call__(self, inputs):
        inputs = {name: inputs[name] for name in self.backbone.config.input_names}
        trunk, length = copy.copy(self.backbone.trunk), None
        if self.dynamic_length:
            length = tf.shape(inputs["token_ids"])[1]
            tf.debugging.assert_less_equal(length, self.length, too_long(self.length))
        for name, value in self.constants.items():
            setattr(trunk, name, _giving(name, value if length is None else _cut(value, length)))
        with tracing_for(traced_for() or "saved"):
            x = trunk(inputs)
            pooled = self.backbone.get_layer("pooled_dense")(x[:, 0])
        return {"sequence_output": x, "pooled_output": pooled}

    def _of(self, name, length):
        """Returns what a layer of the trunk answers where there are no words."""
        trunk = self.backbone.trunk
        with tracing_for("saved"):
            if name == "position_bias" and not self.dynamic_length:
                return trunk.position_terms(length=length)[name]
            width = trunk.config.embedding_width
            return getattr(trunk, name)(ops.zeros((1, length, width), trunk.dtype.compute_dtype))

    def _begins(self, name, whole):
        """Returns whether the term of shorter sequences is the beginning of that of long ones."""
        if not self.dynamic_length:
            return True
        lengths = {1, (self.length + 1) // 2, max(1, self.length - 1)}
        return all(_equal(self._of(name, length), _cut(whole, length)) for length in lengths)


def _giving(name, value):
    """Returns what stands for a layer of the trunk whose answer is known."""
    if name == "position_embedding":
        return lambda x, start_index: x + value
    return lambda x: value


def _cut(value, length):
    """Returns the beginning of added vectors, `(1, length, width)`, or of a bias."""
    return value[:, :length] if len(value.shape) == 3 else value[..., :length, :length]


def _equal(ours, theirs):
    """Returns whether two tensors are the same but for rounding."""
    ours, theirs = map(ops.convert_to_numpy, (ours, theirs))
    most = ROUNDING * max(1, np.abs(theirs).max(initial=0))
    return ours.shape == theirs.shape and np.abs(ours - theirs).max(initial=0) <= most


def too_long(length):
    """Returns the message for a sequence above a model's longest."""
    return (
        f"The model has positions for at most {length} tokens. Truncate the input, or export the "
        "model with a larger length"
    )
