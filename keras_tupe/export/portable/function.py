"""A model as one float32 function of any batch and length, ready for conversion."""

import tensorflow as tf
from keras import ops

from keras_tupe.export._names import ENCODER_INPUTS, HUB_NAMES, from_hub, input_specs
from keras_tupe.export.encoder import embedding, probabilities
from keras_tupe.layers._tracing import traced_for
from keras_tupe.models import TupeBackbone, TupeMaskedLM, TupeTextClassifier, TupeTextEmbedder


def float32_model(model):
    """Returns the model, or a copy of it under the float32 policy if its own is another.

    Args:
        model: a `TupeBackbone`, or a `TupeMaskedLM`, `TupeTextClassifier` or `TupeTextEmbedder`.
    """
    backbone = getattr(model, "backbone", model)
    if backbone.dtype_policy.name == "float32":
        return model
    copy = TupeBackbone.from_config({**backbone.get_config(), "dtype": "float32"})
    if isinstance(model, TupeTextClassifier):
        copy = TupeTextClassifier(copy, model.num_classes, activation=model.activation)
    elif isinstance(model, TupeTextEmbedder):
        copy = TupeTextEmbedder(copy, pooling=model.pooling, normalize=model.normalize)
    elif isinstance(model, TupeMaskedLM):
        copy = TupeMaskedLM(copy, head_activation=model.head_activation)
    for old, new in zip(model.weights, copy.weights, strict=True):
        new.assign(ops.cast(old, "float32"))
    return copy


def portable_inputs(model):
    """Returns the names of the inputs as Keras has them."""
    return tuple(HUB_NAMES) if isinstance(model, TupeMaskedLM) else ENCODER_INPUTS


def portable_function(model):
    """Returns a `tf.function` of the inputs, int32 `(batch, length)` each, in inference mode.

    Its outputs, a dictionary, are those that `export_onnx` describes.

    Args:
        model: what `float32_model` returned.
    """
    backbone = getattr(model, "backbone", model)
    specs = list(input_specs(portable_inputs(model), None).values())
    names = [spec.name for spec in specs]

    def call(*tensors):
        inputs = from_hub(dict(zip(names, tensors, strict=True)))
        if backbone.has_length_limit:
            inputs["token_ids"] = _at_most(inputs["token_ids"], backbone.max_sequence_length)
        rows = tf.shape(inputs["token_ids"])[0]
        if traced_for() == "onnx":
            inputs = _at_least_one_row(inputs)
        known = {tensor.name: inputs[tensor.name] for tensor in backbone.inputs}
        outputs = dict(backbone(known, training=False))
        if isinstance(model, TupeMaskedLM):
            outputs["mlm_logits"] = model.head(
                outputs["sequence_output"], mask_positions=inputs["mask_positions"]
            )
        if isinstance(model, TupeTextClassifier):
            outputs["probabilities"] = probabilities(model, outputs["pooled_output"])
        if isinstance(model, TupeTextEmbedder):
            outputs["embedding"] = embedding(
                model, outputs["sequence_output"], inputs["padding_mask"]
            )
        return {name: tf.identity(value[:rows], name=name) for name, value in outputs.items()}

    return tf.function(call, input_signature=specs, autograph=False)


def _at_least_one_row(inputs):
    """Returns the inputs, with a row of zeros if there is none: ONNX Runtime's products of no rows
    have the shape of other products."""
    missing = tf.maximum(1 - tf.shape(inputs["token_ids"])[0], 0)
    return {name: tf.pad(value, [[0, missing], [0, 0]]) for name, value in inputs.items()}


def _at_most(token_ids, limit):
    """Returns the ids, by way of an op that fails in every runtime for more than `limit` tokens.

    Neither format has assertions, and a table of distances would answer with its last row.
    """
    size = tf.maximum(tf.shape(token_ids)[1], limit)
    # a new axis, because converters take out a reshape that keeps their number
    numbers = tf.reshape(tf.range(size), [limit, 1], name=f"at_most_{limit}_tokens")
    return token_ids + numbers[0]  # + 0
