"""A SavedModel in MLServer. Runs in the server's environment, copied beside its settings.

MLServer merges the requests of up to `max_batch_time` seconds before it calls `predict`, and cuts
the outputs again. It joins their data without a look at the shapes, so that one request of another
length shifts the answers of its neighbors or makes all of them fail. Therefore each request is
checked before it is merged, and what fails together is tried again one by one. This needs
`"parallel_workers": 0`: workers get what was merged already.
"""

import asyncio

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  for the ops of the tokenizer
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceResponse, MetadataTensor, Parameters, TensorData

DATATYPES = {"string": "BYTES", "int32": "INT32", "float32": "FP32"}


class SavedModelRuntime(MLModel):
    """Serves one signature of the SavedModel at `parameters.uri`.

    Inputs and outputs have the names of the signature; a request may ask for some of the outputs.
    Every answer has the parameter `batch_rows`, the rows that were computed together.
    `parameters.extra`: `{"signature": "serving_default"}`.
    """

    async def load(self):
        parameters = self.settings.parameters
        self._model = tf.saved_model.load(parameters.uri)  # its functions die with it
        self._signature = self._model.signatures[parameters.extra["signature"]]
        self._specs = self._signature.structured_input_signature[1]
        self.inputs = [_metadata(name, spec) for name, spec in self._specs.items()]
        self.outputs = [
            _metadata(name, spec) for name, spec in self._signature.structured_outputs.items()
        ]
        # MLServer has put its batching around `predict` before it calls `load`.
        self._batched = self.predict
        self.predict = self._checked
        return True

    async def _checked(self, payload):
        given = {tensor.name: tensor for tensor in payload.inputs}
        if set(given) != set(self._specs) or len(payload.inputs) != len(given):
            raise InferenceError(
                f"The inputs must be {sorted(self._specs)}, each once. "
                f"Received: {[tensor.name for tensor in payload.inputs]}"
            )
        for name, tensor in given.items():
            _check(tensor, self._specs[name])
        if len({tensor.shape[0] for tensor in given.values()}) > 1:
            raise InferenceError("All inputs must have the same number of rows.")
        names = [output.name for output in payload.outputs or ()]
        unknown = set(names) - set(self._signature.structured_outputs)
        if unknown:
            raise InferenceError(
                f"The outputs are {sorted(self._signature.structured_outputs)}. "
                f"Received: {sorted(unknown)}"
            )
        try:
            return await self._batched(payload)
        except tf.errors.InvalidArgumentError:  # of this request or of one merged with it
            pass
        try:
            return await type(self).predict(self, payload)
        except tf.errors.InvalidArgumentError as error:
            raise InferenceError(f"The model refused the input: {error.message}") from error

    async def predict(self, payload):
        feeds = {tensor.name: _tensor(tensor, self._specs) for tensor in payload.inputs}
        # In a thread, so that requests are read and merged while the model computes.
        outputs = await asyncio.to_thread(self._signature, **feeds)
        wanted = {output.name for output in payload.outputs or ()} or set(outputs)
        rows = int(next(iter(feeds.values())).shape[0])
        return InferenceResponse(
            model_name=self.name,
            model_version=self.version,
            id=payload.id,
            parameters=Parameters(batch_rows=rows),
            outputs=[
                NumpyCodec.encode_output(name, value.numpy())
                for name, value in outputs.items()
                if name in wanted
            ],
        )


def _metadata(name, spec):
    shape = [-1 if size is None else size for size in spec.shape]
    return MetadataTensor(name=name, datatype=DATATYPES[spec.dtype.name], shape=shape)


def _check(tensor, spec):
    """Raises `InferenceError` if an input is not what the signature takes; makes its data flat."""
    sizes = list(tensor.shape)
    if spec.dtype == tf.string and len(sizes) == 2 and sizes[1] == 1:
        sizes = tensor.shape = sizes[:1]  # MLServer's own clients send strings so
    expected = [-1 if size is None else size for size in spec.shape]
    fits = len(sizes) == len(expected) and all(
        size == wanted or (wanted == -1 and size > 0)
        for size, wanted in zip(sizes, expected, strict=True)
    )
    datatype = getattr(tensor.datatype, "value", tensor.datatype)
    if not fits or datatype != DATATYPES[spec.dtype.name]:
        raise InferenceError(
            f"{tensor.name} must be {DATATYPES[spec.dtype.name]} of shape {expected}, where -1 is "
            f"any number > 0. Received: {datatype} of shape {sizes}"
        )
    read = _strings if spec.dtype == tf.string else _integers
    try:
        data = read(tensor.data.root, spec.dtype)
    except (OverflowError, TypeError, ValueError) as error:  # UnicodeError is a ValueError
        raise InferenceError(f"{tensor.name} cannot be read: {error}") from error
    if len(data) != np.prod(sizes):
        raise InferenceError(
            f"{tensor.name} must have one value for each element of its shape. "
            f"Received: {len(data)} values for the shape {sizes}"
        )
    tensor.data = TensorData(root=data)


def _strings(data, dtype):
    if not all(isinstance(text, str | bytes) for text in data):
        raise TypeError("it must be a flat list of strings")
    # REST gives strings, gRPC bytes; both may be merged.
    texts = [text.encode() if isinstance(text, str) else text for text in data]
    for text in texts:
        text.decode()
    return texts


def _integers(data, dtype):
    values = np.asarray(data)
    if values.dtype.kind not in "iu":
        raise TypeError("it must be integers")
    if values.min() < dtype.min or values.max() > dtype.max:
        raise OverflowError(f"it must fit {dtype.name}")
    return values.ravel().tolist()


def _tensor(tensor, specs):
    dtype = specs[tensor.name].dtype
    if dtype == tf.string:
        return tf.constant(tensor.data.root, dtype)
    return tf.constant(np.asarray(tensor.data.root, dtype.name).reshape(tensor.shape))
