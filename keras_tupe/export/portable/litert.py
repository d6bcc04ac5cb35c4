"""The model as a LiteRT file."""

import re
import tempfile

import tensorflow as tf

from keras_tupe.export.portable.file import write_portable
from keras_tupe.export.portable.function import portable_function
from keras_tupe.export.portable.optional import optional_module
from keras_tupe.layers._tracing import tracing_for

SIGNATURE = "serving_default"


def export_litert(model, path):
    """Writes a model as a LiteRT (TensorFlow Lite) file for any batch and length, in float32.

    The file has one signature, `serving_default`; its inputs and outputs, their names, types and
    shapes are those of `export_onnx`. It has LiteRT's own ops only: an interpreter without
    TensorFlow's ops ("Flex") runs it, such as that of the package `ai-edge-litert`, which runs
    the converted model at several lengths and batches before it is written.

    A sequence above `max_sequence_length` is an error in the runtime, for methods with a table
    that ends there; so is an id or a position outside its range, a negative one too. After an
    error the interpreter of `ai-edge-litert` repeats it at the front of the message of the next:
    make a new interpreter, or read the end.

    Args:
        model: a `TupeBackbone`, or a `TupeMaskedLM`, `TupeTextClassifier` or `TupeTextEmbedder`.
        path: file to make; its name ends with `.tflite`.

    Returns:
        Record of the file with `path`, `bytes`, `seconds` of the conversion and `worst`, the
        worst difference.

    Raises:
        ImportError: if the packages of the extra `portable` are missing.
        TypeError: if `model` is something else.
        ValueError: if the model has no weights yet, or `path` exists or ends otherwise.
        RuntimeError: if LiteRT has no equivalent of an op, differs from Keras by more than 1e-4 x
            max(1, |value|), or takes longer sequences than the model. Nothing is written then.

    References:
        https://ai.google.dev/edge/litert
    """
    optional_module("ai_edge_litert.interpreter")
    return write_portable(model, path, ".tflite", to_litert, run_litert)


def to_litert(model):
    """Returns the content of a LiteRT file.

    Args:
        model: what `float32_model` returned.

    Raises:
        RuntimeError: if the converter refuses the model.
    """
    root = tf.train.Checkpoint()
    root.variables = [variable.value for variable in model.variables]
    with tracing_for("litert"):
        function = portable_function(model).get_concrete_function()
    with tempfile.TemporaryDirectory() as folder:
        # A converter of functions leaves variables in the file without their values.
        tf.saved_model.save(root, folder, signatures={SIGNATURE: function})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=[SIGNATURE])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        try:
            return converter.convert()
        except Exception as error:  # of a private class, with the whole graph as its message
            missing = re.search("TF Select ops: (.*)", str(error))
            raise RuntimeError(
                "The model has no equivalent in LiteRT's own ops. Received: "
                f"{missing[1] if missing else str(error)[:300]}"
            ) from None


def run_litert(content):
    """Returns a function that runs a LiteRT file, inputs by name -> outputs by name.

    Args:
        content: bytes of the file.
    """
    interpreter = optional_module("ai_edge_litert.interpreter")

    def new_runner():
        return interpreter.Interpreter(model_content=content).get_signature_runner(SIGNATURE)

    runner = new_runner()

    def run(inputs):
        nonlocal runner
        try:
            return runner(**inputs)
        except Exception:
            runner = new_runner()  # the old one would repeat this error before its next
            raise

    return run
