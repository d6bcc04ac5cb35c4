"""The model as an ONNX file."""

import contextlib
import logging

import keras
import tensorflow as tf
from keras import ops

from keras_tupe.export.portable.file import write_portable
from keras_tupe.export.portable.function import portable_function
from keras_tupe.export.portable.optional import optional_module
from keras_tupe.layers._tracing import tracing_for

OPSET = 18
AXES = {
    "sequence_output": ("batch", "length", None),
    "pooled_output": ("batch", None),
    "masked_lm_positions": ("batch", "predictions"),
    "mlm_logits": ("batch", "predictions", None),
    "probabilities": ("batch", None),
}
_INPUT_AXES = ("batch", "length")


def export_onnx(model, path):
    """Writes a model as an ONNX file for any batch and any length, in float32.

    Inputs, int32 `(batch, length)`, with TF Hub's names: `input_word_ids`, `input_mask` (1 = real
    token), `input_type_ids` (ignored by a model without segments). For a `TupeMaskedLM` also
    `masked_lm_positions` `(batch, predictions)`, positions in [0, length).

    Outputs, float32: `sequence_output` `(batch, length, hidden_dim)` and `pooled_output`
    `(batch, hidden_dim)`; of a `TupeMaskedLM` also `mlm_logits` `(batch, predictions,
    vocabulary_size)`, of a `TupeTextClassifier` `probabilities` `(batch, num_classes)`, of a
    `TupeTextEmbedder` `embedding` `(batch, hidden_dim)`. Pass `model.backbone` for a file of the
    encoder alone.

    ONNX Runtime runs the converted model at several lengths and batches before it is written. A
    model under another dtype policy is converted in float32, and compared as such.

    A sequence above `max_sequence_length` is an error in the runtime, for methods with a table
    that ends there; the op that fails has the limit in its name. So is an id or a position
    outside its range, a negative one too, where the message names the first that is too large: it
    stands for negative ones. A batch may be empty. The method and the limit are in
    the file's metadata.

    Args:
        model: a `TupeBackbone`, or a `TupeMaskedLM`, `TupeTextClassifier` or `TupeTextEmbedder`.
        path: file to make; its name ends with `.onnx`.

    Returns:
        Record of the file with `path`, `bytes`, `seconds` of the conversion and `worst`, the
        worst difference.

    Raises:
        ImportError: if the packages of the extra `portable` are missing.
        TypeError: if `model` is something else.
        ValueError: if the model has no weights yet, or `path` exists or ends otherwise.
        RuntimeError: if ONNX has no equivalent of an op, ONNX Runtime differs from Keras by more
            than 1e-4 x max(1, |value|), or it takes longer sequences than the model. Nothing is
            written then.

    References:
        https://onnx.ai, https://github.com/onnx/tensorflow-onnx
    """
    for name in ("onnx", "tf2onnx", "onnxruntime"):
        optional_module(name)
    return write_portable(model, path, ".onnx", to_onnx, run_onnx)


def to_onnx(model):
    """Returns the content of an ONNX file.

    Args:
        model: what `float32_model` returned.

    Raises:
        RuntimeError: if the converter reports an error or its graph is not valid.
    """
    onnx, tf2onnx = optional_module("onnx"), optional_module("tf2onnx")
    function = _with_weights_as_inputs(portable_function(model), model.weights)
    with tracing_for("onnx"), _reported_errors("tf2onnx") as errors:
        converted, _ = tf2onnx.convert.from_function(
            function, function.input_signature, opset=OPSET
        )
    if errors:  # tf2onnx goes on and leaves TensorFlow's ops in the graph
        raise RuntimeError(f"The model has no equivalent in ONNX. Received: {'; '.join(errors)}")
    _hold_weights(converted.graph, model.weights)
    for tensor in (*converted.graph.input, *converted.graph.output):
        _name_axes(tensor)
    backbone = getattr(model, "backbone", model)
    limit = backbone.max_sequence_length if backbone.has_length_limit else "none"
    facts = {"made_by": "keras_tupe", "position": backbone.position, "longest_sequence": str(limit)}
    onnx.helper.set_model_props(converted, facts)
    onnx.checker.check_model(converted, full_check=True)
    return converted.SerializeToString()


def run_onnx(content):
    """Returns a function that runs an ONNX file, inputs by name -> outputs by name.

    Args:
        content: bytes of the file.
    """
    runtime = optional_module("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def _with_weights_as_inputs(function, weights):
    """Returns a `tf.function` that takes the values of weights after its inputs.

    tf2onnx copies constants again and again, and writes those twice that are used twice: a base
    model took more than 15 GB of memory.
    """
    specs = [tf.TensorSpec(weight.shape, weight.dtype, name=weight.path) for weight in weights]
    signature = [*function.input_signature, *specs]

    def call(*tensors):
        values = tensors[-len(weights) :]
        with keras.StatelessScope(state_mapping=list(zip(weights, values, strict=True))):
            return function.python_function(*tensors[: -len(weights)])

    return tf.function(call, input_signature=signature, autograph=False)


def _hold_weights(graph, weights):
    """Turns the last inputs of an ONNX graph into constants."""
    to_onnx_tensor = optional_module("onnx.numpy_helper").from_array
    for tensor, weight in zip(graph.input[-len(weights) :], weights, strict=True):
        graph.initializer.append(to_onnx_tensor(ops.convert_to_numpy(weight), tensor.name))
    del graph.input[-len(weights) :]


def _name_axes(tensor):
    axes = tensor.type.tensor_type.shape.dim
    for axis, name in zip(axes, AXES.get(tensor.name, _INPUT_AXES), strict=True):
        if name is not None:
            axis.dim_param = name


@contextlib.contextmanager
def _reported_errors(logger):
    """Yields a list to which every error in the log of a package is added."""
    errors = []

    class Collector(logging.Handler):
        def emit(self, record):
            errors.append(record.getMessage())

    handler = Collector(level=logging.ERROR)
    logging.getLogger(logger).addHandler(handler)
    try:
        yield errors
    finally:
        logging.getLogger(logger).removeHandler(handler)
