"""The encoder as a reusable SavedModel."""

import tensorflow as tf

from keras_tupe.layers._checks import check_positive_integers

INPUT_NAMES = {
    "token_ids": "input_word_ids",
    "padding_mask": "input_mask",
    "segment_ids": "input_type_ids",
    "mask_positions": "masked_lm_positions",
}
ENCODER_INPUTS = ("token_ids", "padding_mask", "segment_ids")


def export_encoder(model, path, length=None, dynamic_length=False):
    """Writes an encoder as a reusable SavedModel with TF Hub's names for text encoders.

    What `tf.saved_model.load(path)` returns:

    - `obj(inputs, training=False)`: dictionary of int32 `(batch, length)` tensors
      `input_word_ids`, `input_mask` (1 = real token), `input_type_ids` (ignored by a model
      without segments) -> dictionary of float32 `sequence_output` `(batch, length, hidden_dim)`,
      `pooled_output` and `default` `(batch, hidden_dim)`. Any length that the model has.
    - `obj.mlm(inputs, training=False)`, for a masked language model: the inputs and
      `masked_lm_positions` `(batch, predictions)` -> the outputs and `mlm_logits`
      `(batch, predictions, vocabulary_size)`.
    - `variables`, `trainable_variables`, `regularization_losses` (empty).
    - signature `serving_default`: the three inputs at one fixed length. A server that batches
      requests of mixed lengths pads them with their first element, which gives silently wrong
      answers at any dynamic length, so that `dynamic_length`, a signature, must be asked for.

    Keep the loaded object in a variable: its functions die with it.

    Args:
        model: a `TupeBackbone` or `TupeMaskedLM`.
        path: folder to write; it is made, and its files are replaced.
        length: length of `serving_default`, in tokens. Defaults to the model's
            `max_sequence_length`.
        dynamic_length: whether to add the signature `dynamic_length`. Only for clients that send
            whole batches of one length.

    Raises:
        ValueError: if `length` is not a positive integer, or above `max_sequence_length` for a
            method with a table that ends there.

    References:
        TF Hub, Common SavedModel APIs for Text; Reusable SavedModels.
    """
    backbone = getattr(model, "backbone", model)
    length = backbone.max_sequence_length if length is None else length
    check_positive_integers(length=length)
    if backbone.has_length_limit and length > backbone.max_sequence_length:
        raise ValueError(
            "`length` must not exceed the model's max_sequence_length="
            f"{backbone.max_sequence_length}. Received: length={length}"
        )
    root = _reusable(backbone, _encode(backbone), ENCODER_INPUTS)
    if model is not backbone:
        root.mlm = _reusable(model, _predict(model), tuple(INPUT_NAMES))

    def signature(size):
        serve = tf.function(lambda **inputs: _encode(backbone)(inputs, False), autograph=False)
        return serve.get_concrete_function(**_specs(ENCODER_INPUTS, size))

    signatures = {"serving_default": signature(length)}
    if dynamic_length:
        signatures["dynamic_length"] = signature(None)
    tf.saved_model.save(root, str(path), signatures=signatures)


def _encode(backbone):
    def encode(inputs, training):
        outputs = backbone(_named(inputs, backbone), training=training)
        outputs = {name: tf.cast(value, tf.float32) for name, value in outputs.items()}
        return {**outputs, "default": tf.identity(outputs["pooled_output"])}

    return encode


def _predict(model):
    encode = _encode(model.backbone)

    def predict(inputs, training):
        outputs = encode(inputs, training)
        logits = model.head(
            outputs["sequence_output"], mask_positions=inputs[INPUT_NAMES["mask_positions"]]
        )
        return {**outputs, "mlm_logits": tf.cast(logits, tf.float32)}

    return predict


def _named(inputs, backbone):
    """Returns the backbone's own inputs from TF Hub's."""
    return {tensor.name: inputs[INPUT_NAMES[tensor.name]] for tensor in backbone.inputs}


def _specs(names, length):
    names = [INPUT_NAMES[name] for name in names]
    return {name: tf.TensorSpec([None, length], tf.int32, name=name) for name in names}


def _reusable(model, function, names):
    """Returns a trackable object in the form of a reusable SavedModel."""
    root = tf.train.Checkpoint()

    @tf.function(autograph=False)
    def call(inputs, training=False):
        return function(inputs, training)

    for training in (False, True):  # one trace for each Python boolean
        call.get_concrete_function(_specs(names, None), training=training)
    call.get_concrete_function(_specs(names, None))
    root.__call__ = call
    root.variables = [variable.value for variable in model.variables]
    root.trainable_variables = [variable.value for variable in model.trainable_variables]
    root.regularization_losses = []
    return root
