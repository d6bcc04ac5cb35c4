"""Texts longer than a row, read one part after the other with a memory of what came before."""

import keras
import numpy as np
from keras import ops

from keras_tupe import positions
from keras_tupe.layers._checks import check_positive_integers, concrete
from keras_tupe.models._cached_backbone import position_terms
from keras_tupe.models._inputs import check_inputs
from keras_tupe.models.tupe_backbone import TupeBackbone


def call_with_memory(backbone, inputs, memory=None):
    """Returns the hidden states of the next part of some texts, and the memory for the part after.

    Equation (Dai et al. 2019, Sec. 3.2), with SG for no gradient, h_l the hidden states that block
    l is given for a segment, and m_l those that it was given for the M tokens before:

        queries of h_l,  keys and values of [SG(m_l), h_l]

    Parts are read as rows are: cut into segments, each with its own memory. So texts in parts whose
    lengths are multiples of the segments' get the hidden states of one long row. There is no
    dropout.

    Args:
        backbone: a `TupeBackbone` with a memory.
        inputs: as of the backbone, `(batch, length)`: the next tokens of each text.
        memory: what this function returned for the tokens before, of the same texts in the same
            rows. Defaults to `None`: the texts begin. Where another text begins in some row, set
            the `mask` of that row to zeros.

    Returns:
        Hidden states `(batch, length, hidden_dim)`, and a dictionary: `hidden_states`
        `(num_layers, batch, memory_length, hidden_dim)`, what each block was given for the last
        tokens, and `mask` `(batch, memory_length)`, 1 = token.

    Raises:
        TypeError: if `backbone` is none.
        ValueError: if it has no memory, the inputs do not fit it, or they do not continue the
            memory: it is of other rows or sizes, or ends with padding.

    Example:
        >>> backbone = keras_tupe.TupeBackbone(
        ...     100, 1, 2, 16, 32, "rope", attention_pattern="causal", memory_length=4
        ... )
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> given = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
        >>> x, memory = call_with_memory(backbone, given)
        >>> x, memory = call_with_memory(backbone, given, memory)
        >>> tuple(x.shape), tuple(memory["hidden_states"].shape)
        ((1, 4, 16), (1, 1, 4, 16))

    References:
        Dai et al. Transformer-XL. ACL 2019. https://arxiv.org/abs/1901.02860
    """
    _check_backbone(backbone)
    names = [tensor.name for tensor in backbone.inputs]
    check_inputs(inputs, names)
    inputs = {name: ops.cast(inputs[name], "int32") for name in names}
    memory = _checked(backbone, inputs, memory)
    layers = {layer.name: layer for layer in backbone.layers}
    length = backbone.memory_length + backbone.segment_length
    bias, shared = position_terms(layers, length, backbone.compute_dtype)
    terms = {"position_bias": bias, "shared_positions": shared}
    x = keras.Function(backbone.input, backbone._block_inputs()[0])(inputs)
    mask, kept = inputs["padding_mask"], []
    for block, before in zip(backbone.blocks, ops.unstack(memory["hidden_states"]), strict=True):
        kept.append(_last(before, ops.stop_gradient(x)))
        x = block(x, **terms, padding_mask=mask, memory=before, memory_mask=memory["mask"])
    if backbone.normalize_first:
        x = backbone.get_layer("final_layer_norm")(x)
    return x, {"hidden_states": ops.stack(kept), "mask": _last(memory["mask"], mask)}


def with_memory_length(model, memory_length, segment_length=None):
    """Returns a copy of a model with a memory of another length.

    All weights are copied. A longer memory than that of training is how Transformer-XL is evaluated
    (Dai et al. 2019, Sec. 4.3).

    Args:
        model: a `TupeBackbone`, or a task with one, such as `TupeCausalLM`. It stays as it is.
        memory_length: tokens of the memory before each segment, 0 for none.
        segment_length: tokens of a segment. Defaults to those of the model.

    Returns:
        A new model of the same class, not compiled as the old one was, with its preprocessor.

    Raises:
        TypeError: if `model` is no such model.
        ValueError: if a length is impossible, the position method has no memory or absolute
            positions in it, or its tables are too short.

    Example:
        >>> backbone = keras_tupe.TupeBackbone(
        ...     100, 1, 2, 16, 32, "rope", attention_pattern="causal", memory_length=4
        ... )
        >>> longer = with_memory_length(backbone, 16)
        >>> longer.memory_length, longer.segment_length
        (16, 4)
    """
    backbone = getattr(model, "backbone", model)
    if not isinstance(backbone, TupeBackbone):
        raise TypeError(
            "`model` must be a `TupeBackbone` or a task with one, such as `TupeCausalLM`. "
            f"Received: model={model!r}"
        )
    segment_length = backbone.segment_length if segment_length is None else segment_length
    if segment_length is None:
        raise ValueError(
            "The model reads whole rows: say by `segment_length` how many tokens a segment is to "
            "have. Received: a model with memory_length=0, segment_length=None"
        )
    check_positive_integers(segment_length=segment_length)
    if positions.get(backbone.position).absolute_tables and (memory_length, segment_length) != (
        backbone.memory_length,
        backbone.segment_length,
    ):
        raise ValueError(
            f"The position method {backbone.position!r} has a vector for each token of memory and "
            "segment: with another memory all would stand at other positions. Use a method of "
            "distances, or train with that memory. Received: "
            f"memory_length={memory_length}, segment_length={segment_length} for a model with "
            f"{backbone.memory_length} and {backbone.segment_length}"
        )
    lengths = {"memory_length": memory_length, "segment_length": int(segment_length)}
    changed = TupeBackbone.from_config({**backbone.get_config(), **lengths})
    if model is not backbone:
        config = {**model.get_config(), "backbone": changed, "preprocessor": model.preprocessor}
        changed = type(model)(**{k: v for k, v in config.items() if k != "trainable"})
    for old, new in zip(model.weights, changed.weights, strict=True):
        new.assign(old)
    return changed


def _check_backbone(backbone):
    if not isinstance(backbone, TupeBackbone):
        raise TypeError(
            "`backbone` must be a `TupeBackbone`; of a task it is `model.backbone`. Received: "
            f"backbone={backbone!r}"
        )
    if not backbone.memory_length:
        raise ValueError(
            "Texts are read on with a memory. Make the backbone with `memory_length`, or change it "
            "by `with_memory_length`. Received: a backbone with memory_length=0"
        )


def _checked(backbone, inputs, memory):
    """Returns the memory as tensors, of zeros if there is none."""
    batch, size = ops.shape(inputs["token_ids"])[0], backbone.memory_length
    shapes = {
        "hidden_states": (backbone.num_layers, batch, size, backbone.hidden_dim),
        "mask": (batch, size),
    }
    dtypes = {"hidden_states": backbone.compute_dtype, "mask": "int32"}
    if memory is None:
        return {name: ops.zeros(shape, dtypes[name]) for name, shape in shapes.items()}
    if not isinstance(memory, dict) or set(memory) != set(shapes):
        received = sorted(memory) if isinstance(memory, dict) else type(memory).__name__
        raise ValueError(
            f"`memory` must be what `call_with_memory` returned, with {sorted(shapes)}, or None "
            f"where texts begin. Received: {received}"
        )
    for name, shape in shapes.items():
        received = tuple(memory[name].shape)
        if len(received) != len(shape) or any(
            isinstance(wanted, int) and size not in (wanted, None)
            for size, wanted in zip(received, shape, strict=True)
        ):
            raise ValueError(
                "The inputs must continue what the memory is of: the same texts in the same rows, "
                f"read by the same model. `{name}` must have the shape {shape}. Received: "
                f"{received}"
            )
    mask = concrete(memory["mask"])
    if mask is not None and (np.diff(np.asarray(mask, "bool").astype(int), axis=1) < 0).any():
        row = int((np.diff(np.asarray(mask, "bool").astype(int), axis=1) < 0).any(axis=1).argmax())
        raise ValueError(
            "The inputs must continue what the memory is of, and a text that ended in padding has "
            "ended: set its row of `mask` to zeros, and begin another text there. Received: a "
            f"`mask` whose row {row} has padding after a token"
        )
    return {name: ops.cast(memory[name], dtypes[name]) for name in shapes}


def _last(before, x):
    """Returns the last positions of a memory and what comes after it, as many as it has."""
    size = before.shape[1]
    both = ops.concatenate([before, ops.cast(x, before.dtype)], axis=1)
    return both[:, -size:]
