"""The encoder as a reusable SavedModel."""

import keras
import tensorflow as tf
from keras import ops

from keras_tupe.export._assertions import checked
from keras_tupe.export._checks import check_length, check_model
from keras_tupe.export._folders import new_export
from keras_tupe.export._folding import FoldedEncoder, too_long
from keras_tupe.export._names import ENCODER_INPUTS, HUB_NAMES, from_hub, input_specs
from keras_tupe.layers._tracing import tracing_for
from keras_tupe.models import SavedEncoder, TupeMaskedLM, TupeTextClassifier, TupeTextEmbedder
from keras_tupe.models._backbone_config import write_backbone_config


def export_encoder(model, path, length=None, dynamic_length=False):
    """Writes an encoder as a reusable SavedModel with TF Hub's names for text encoders.

    What `tf.saved_model.load(path)` returns, an object to keep in a variable, since its functions
    die with it:

    - `obj(inputs, training=False)`: dictionary of int32 `(batch, length)` tensors
      `input_word_ids`, `input_mask` (1 = real token), `input_type_ids` (ignored by a model
      without segments; zeros if it is left out) -> dictionary of float32 `sequence_output`
      `(batch, length, hidden_dim)`, `pooled_output` and `default` `(batch, hidden_dim)`. Any
      length that the model has; it can be fine-tuned.
    - `obj.mlm(inputs, training=False)`, for a masked language model: the inputs and
      `masked_lm_positions` `(batch, predictions)` -> the outputs and `mlm_logits`
      `(batch, predictions, vocabulary_size)`.
    - `variables`, `trainable_variables`, `regularization_losses`: one function per weight with a
      regularizer.

    and its signatures, for serving, at one fixed length:

    - `serving_default`: inputs and outputs as above.
    - `encode`: the same with Keras's names `token_ids`, `padding_mask`, `segment_ids`.
    - `classify`, for a classifier: also `probabilities` `(batch, num_classes)`, see
      `export_text_model`.
    - `embed`, for an embedder: also `embedding` `(batch, hidden_dim)`, what the model answers.
    - `dynamic_length`, on request: as `serving_default` at any length up to `length`.

    **A server that batches requests of mixed lengths pads them with their first element**: the
    mask with ones, the ids with [CLS]. The answers of `dynamic_length` are then wrong without an
    error. Ask for it only if every client sends whole batches of one length.

    Ids outside the vocabulary, negative ones too, inputs of different shapes, and rows of another
    length than a signature's are errors, unless XLA compiles the graph, which knows no assertions.

    In signatures every position term that does not depend on the words is a constant: there is no
    position table, product of positions or bucket arithmetic in them. `obj(...)` computes all
    anew, so that it stays right in training. A signature of fine-tuned weights is made by exporting
    again.

    Args:
        model: a `TupeBackbone`, `TupeMaskedLM`, `TupeTextClassifier` or `TupeTextEmbedder`, or a
            `SavedEncoder` of one of our exports, of which the encoder is exported, without a head.
        path: folder to make. It may exist if it is empty.
        length: tokens per row in the signatures. Defaults to the model's `max_sequence_length`.
        dynamic_length: whether to add the signature `dynamic_length`. Defaults to `False`.

    Raises:
        TypeError: if `model` is something else.
        ValueError: if `length` is not a positive integer, or above `max_sequence_length` for a
            method with a table that ends there; if the model has no weights yet; if the folder
            has files in it. Nothing is written then.

    References:
        TF Hub, Common SavedModel APIs for Text; Reusable SavedModels.
    """
    if isinstance(model, SavedEncoder):
        model = model.to_backbone()
    backbone = check_model(model)
    length = check_length(backbone, length)
    with new_export(path) as folder:
        root = _reusable(backbone, _encode(backbone), ENCODER_INPUTS)
        if isinstance(model, TupeMaskedLM):
            root.mlm = _reusable(model, _predict(model), tuple(HUB_NAMES))
        if isinstance(model, TupeTextClassifier):
            root.classifier = tf.train.Checkpoint(layer=model.get_layer("logits"))
        tf.saved_model.save(root, str(folder), _signatures(model, backbone, length, dynamic_length))
        write_backbone_config(backbone, folder)


def _signatures(model, backbone, length, dynamic_length):
    folded = FoldedEncoder(backbone, length)

    def signature(function, specs):
        return tf.function(function, autograph=False).get_concrete_function(**specs)

    def encode(**inputs):
        names = {name: name for name in HUB_NAMES}
        return as_float32(folded(checked(inputs, backbone, names, length)))

    def serve(**inputs):
        return as_float32(folded(checked(from_hub(inputs), backbone, length=length)))

    def classify(**inputs):
        outputs = serve(**inputs)
        return {**outputs, "probabilities": probabilities(model, outputs["pooled_output"])}

    def embed(**inputs):
        outputs = serve(**inputs)
        vectors = embedding(model, outputs["sequence_output"], from_hub(inputs)["padding_mask"])
        return {**outputs, "embedding": vectors}

    hub = input_specs(ENCODER_INPUTS, length)
    signatures = {
        "serving_default": signature(serve, hub),
        "encode": signature(encode, input_specs(ENCODER_INPUTS, length, hub=False)),
    }
    if isinstance(model, TupeTextClassifier):
        signatures["classify"] = signature(classify, hub)
    if isinstance(model, TupeTextEmbedder):
        signatures["embed"] = signature(embed, hub)
    if dynamic_length:
        any_length = FoldedEncoder(backbone, length, dynamic_length=True)
        signatures["dynamic_length"] = signature(
            lambda **inputs: as_float32(any_length(checked(from_hub(inputs), backbone))),
            input_specs(ENCODER_INPUTS, None),
        )
    return signatures


def as_float32(outputs):
    """Returns an encoder's outputs in float32, with TF Hub's `default` beside them."""
    outputs = {name: tf.cast(value, tf.float32) for name, value in outputs.items()}
    return {**outputs, "default": tf.identity(outputs["pooled_output"])}


def probabilities(model, pooled_output):
    """Returns what a `TupeTextClassifier` makes of pooled outputs, float32 `(batch, num_classes)`.

    Logits of two or more classes go through a softmax; a single number stays as it is.
    """
    answers = tf.cast(model.get_layer("logits")(pooled_output), tf.float32)
    is_linear = keras.activations.get(model.activation) is keras.activations.linear
    return tf.nn.softmax(answers) if is_linear and model.num_classes > 1 else answers


def embedding(model, sequence_output, padding_mask):
    """Returns what a `TupeTextEmbedder` makes of hidden states, float32 `(batch, hidden_dim)`."""
    pool = model.get_layer("token_pooling")
    return tf.cast(pool(sequence_output, padding_mask=padding_mask), tf.float32)


def _encode(backbone):
    names = [tensor.name for tensor in backbone.inputs]

    def encode(inputs, training):
        inputs = checked(from_hub(inputs), backbone)
        if backbone.has_length_limit:  # else a table would be read beyond its end
            limit = backbone.max_sequence_length
            length = tf.shape(inputs["token_ids"])[1]
            tf.debugging.assert_less_equal(length, limit, too_long(limit))
        outputs = backbone({name: inputs[name] for name in names}, training=training)
        return as_float32(outputs)

    return encode


def _predict(model):
    encode = _encode(model.backbone)

    def predict(inputs, training):
        outputs = encode(inputs, training)
        logits = model.head(
            outputs["sequence_output"], mask_positions=from_hub(inputs)["mask_positions"]
        )
        return {**outputs, "mlm_logits": tf.cast(logits, tf.float32)}

    return predict


def _reusable(model, function, names):
    """Returns a trackable object in the form of a reusable SavedModel."""
    root = tf.train.Checkpoint()
    types = HUB_NAMES["segment_ids"]

    @tf.function(autograph=False)
    def whole(inputs, training):
        with tracing_for("saved"):
            return function(inputs, training)

    @tf.function(autograph=False)
    def call(inputs, training=False):
        if types not in inputs:
            inputs = {**inputs, types: tf.zeros_like(inputs[HUB_NAMES["token_ids"]])}
        return whole(inputs, training)

    specs = input_specs(names, None)
    without = {name: spec for name, spec in specs.items() if name != types}
    for given in (specs, without):  # both call the same traces of `whole`
        for training in (False, True):  # one trace for each Python boolean
            call.get_concrete_function(given, training=training)
        call.get_concrete_function(given)
    root.__call__ = call
    root.variables = [variable.value for variable in model.variables]
    root.trainable_variables = [variable.value for variable in model.trainable_variables]
    root.regularization_losses = [
        _regularization_loss(weight) for weight in model.trainable_variables if weight.regularizer
    ]
    return root


def _regularization_loss(weight):
    @tf.function(input_signature=[], autograph=False)
    def loss():
        return tf.cast(weight.regularizer(ops.convert_to_tensor(weight)), tf.float32)

    return loss
