"""Inputs and outputs of a reusable SavedModel, read from its traces."""

import dataclasses
import inspect

import keras

from keras_tupe.models._backbone_config import read_backbone_config

IDS, MASK, TYPES, POSITIONS = (
    "input_word_ids",
    "input_mask",
    "input_type_ids",
    "masked_lm_positions",
)
OUTPUTS = ("sequence_output", "pooled_output")


@dataclasses.dataclass(frozen=True)
class SavedSignature:
    """The call of a loaded encoder.

    Attributes:
        inputs: names of the inputs -> their dtype.
        lengths: lengths that the encoder was traced for, in tokens; `None` among them means any.
        outputs: TensorSpecs in the structure that a call returns, a dictionary at the top.
        takes_training: whether the call has an argument `training`.
        facts: what `read_backbone_config` found, `None` for encoders of others.
    """

    inputs: dict
    lengths: frozenset
    outputs: dict
    takes_training: bool
    facts: dict | None


def read_signature(loaded, path, mlm=False):
    """Returns the `SavedSignature` of what `tf.saved_model.load` returned.

    Args:
        loaded: the loaded object, or its `mlm`.
        path: where it came from, for messages.
        mlm: whether it is to predict masked tokens.

    Raises:
        ValueError: if it cannot be called, or does not take or return what a text encoder
            of TF Hub does, or its config cannot be read.
    """
    traces = getattr(getattr(loaded, "__call__", None), "concrete_functions", None)  # noqa: B004
    if not traces:
        raise ValueError(_not_callable(loaded, path))
    needed = {IDS, MASK, *((POSITIONS,) if mlm else ())}
    allowed = needed | {TYPES}
    fitting = []
    for trace in traces:
        given = trace.structured_input_signature[0]
        specs = given[0] if given and isinstance(given[0], dict) else {}
        if needed <= set(specs) <= allowed and all(map(_holds_integers, specs.values())):
            fitting.append((specs, trace.structured_outputs))
    if not fitting:
        raise ValueError(
            f"The SavedModel is not a {_kind(mlm)}: one takes a dictionary of integers (batch, "
            f"length) with the keys {sorted(needed)} and may take {TYPES!r}. Received: "
            f"path={path!r}, which takes {_shown(traces[0].structured_input_signature[0])}"
        )
    specs, outputs = max(fitting, key=lambda one: len(one[0]))  # with the types, if it knows them
    expected = {*OUTPUTS, *(("mlm_logits",) if mlm else ())}
    if not isinstance(outputs, dict) or expected - set(outputs):
        raise ValueError(
            f"The SavedModel is not a {_kind(mlm)}: one returns a dictionary with the keys "
            f"{sorted(expected)}. Received: path={path!r}, which returns {_shown(outputs)}"
        )
    return SavedSignature(
        inputs={name: spec.dtype.name for name, spec in specs.items()},
        lengths=frozenset(specs[IDS].shape[1] for specs, _ in fitting),
        outputs=outputs,
        takes_training="training" in inspect.signature(loaded.__call__).parameters,
        facts=read_backbone_config(path),
    )


def output_spec(signature, rows, slots=None):
    """Returns `KerasTensor`s in the structure of the outputs.

    Args:
        signature: a `SavedSignature`.
        rows: shape of the token ids, (batch, length).
        slots: shape of the positions to predict, (batch, predictions).
    """
    leading = {
        "sequence_output": rows,
        "encoder_outputs": rows,
        "pooled_output": rows[:1],
        "default": rows[:1],
        "mlm_logits": slots,
    }

    def tensor(name, spec):
        known = leading.get(name, ())
        shape = [None] * (len(known) + 1) if spec.shape.rank is None else list(spec.shape)
        for axis, size in enumerate(known):
            shape[axis] = size
        return keras.KerasTensor(shape, spec.dtype.name)

    return {
        name: keras.tree.map_structure(lambda spec, name=name: tensor(name, spec), value)
        for name, value in signature.outputs.items()
    }


def _holds_integers(spec):
    return hasattr(spec, "dtype") and spec.dtype.is_integer and spec.shape.rank == 2


def _kind(mlm):
    return "masked language model" if mlm else "text encoder"


def _not_callable(loaded, path):
    names = sorted(getattr(loaded, "signatures", {}))
    text = ""
    if {"embed", "fill_mask"} & set(names):
        text = "It takes text, as `keras_tupe.export.export_text_model` writes it. "
    return (
        "The SavedModel is not a reusable encoder, because what is loaded from it cannot be "
        f"called; it has only signatures, which cannot be fine-tuned. {text}Write one with "
        "`keras_tupe.export.export_encoder`. Received: "
        f"path={path!r} with the signatures {names}"
    )


def _shown(structure):
    """Returns names, dtypes and shapes as short text, without TensorFlow's notation."""
    if isinstance(structure, dict):
        return "{" + ", ".join(f"{k!r}: {_shown(v)}" for k, v in sorted(structure.items())) + "}"
    if isinstance(structure, list | tuple):
        return "[" + ", ".join(map(_shown, structure)) + "]"
    if hasattr(structure, "shape") and hasattr(structure, "dtype"):
        shape = structure.shape
        return f"{structure.dtype.name} {'?' if shape.rank is None else tuple(shape)}"
    return repr(structure)
