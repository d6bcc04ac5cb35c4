"""Checks of the data of a task before Keras puts them into a graph."""

import contextlib
import re

import keras
import numpy as np

from keras_tupe.models._inputs import input_names
from keras_tupe.trunk.inputs import check_inputs, check_range, check_token_ids

# What TensorFlow says from inside a graph -> what it means. On GPUs and with XLA it says nothing:
# the loss is then not a number, or the answers mean nothing.
_SENTENCES = (
    (
        r"Received a label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)",
        "Labels must lie in [0, {1}), one number for each class, token or position. "
        "Received: a label {0}",
    ),
    (
        r"indices\S* = (-?\d+) is not in \[0, (\d+)\)\s.*label_of_class",
        "Labels must lie in [0, {1}), one number for each class, token or position. "
        "Received: a label {0}",
    ),
    (
        r"indices\S* = (-?\d+) is not in \[0, (\d+)\)\s.*token_embedding",
        "Token ids must lie in [0, {1}). Was the text encoded with another vocabulary? Received: "
        "a token id {0}, which also stands for negative ones",
    ),
    (
        r"indices\S* = (-?\d+) is not in \[0, (\d+)\)\s.*segment_embedding",
        "Segment ids must lie in [0, {1}). Received: a segment id {0}, which also stands for "
        "negative ones",
    ),
    (
        r"indices\S* = (-?\d+) is not in \[0, (\d+)\)\s.*mlm_head",
        "`mask_positions` must lie in [0, length), here [0, {1}). Received: a position {0}, which "
        "also stands for negative ones",
    ),
    (
        r"Input to reshape is a tensor with (\d+) values, but the requested shape has (\d+)\s.*"
        r"attention\S*/Reshape",
        "`padding_mask` must have the shape of `token_ids`. Received: a batch with {0} values of "
        "the mask for {1} tokens",
    ),
)


class ChecksData:
    """Part of a Keras model: `fit`, `evaluate`, `predict` and their batches with clear errors.

    Arrays are checked before anything is computed; what comes from a data set, when TensorFlow
    stops over it.
    """

    def _task(self):
        """Returns the task whose data it is."""
        return self

    def _num_labels(self, length):
        """Returns how many labels a task has for rows of `length` tokens, `None` if unknown; or a
        dictionary of them for a task with a dictionary of outputs.
        """
        return None

    def fit(self, x=None, y=None, *args, **kwargs):
        with self._clear_errors((x, y), kwargs.get("validation_data")):
            return super().fit(x, y, *args, **kwargs)

    def evaluate(self, x=None, y=None, *args, **kwargs):
        with self._clear_errors((x, y)):
            return super().evaluate(x, y, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        with self._clear_errors((x,)):
            return super().predict(x, *args, **kwargs)

    def train_on_batch(self, x, y=None, *args, **kwargs):
        with self._clear_errors((x, y)):
            return super().train_on_batch(x, y, *args, **kwargs)

    def test_on_batch(self, x, y=None, *args, **kwargs):
        with self._clear_errors((x, y)):
            return super().test_on_batch(x, y, *args, **kwargs)

    @contextlib.contextmanager
    def _clear_errors(self, *data):
        for part in data:
            if isinstance(part, tuple | list) and part:
                self._check_arrays(*part[:2])
        try:
            yield
        except Exception as error:
            if type(error).__name__ != "InvalidArgumentError":  # TensorFlow's, maybe not imported
                raise
            for pattern, sentence in _SENTENCES:
                found = re.search(pattern, str(error), re.DOTALL)
                if found:
                    raise ValueError(sentence.format(*found.groups())) from None
            raise

    def _check_arrays(self, x, y=None):
        task, length = self._task(), None
        if getattr(task, "preprocessor", None) is not None:
            length = getattr(task.preprocessor, "sequence_length", None)
        elif isinstance(x, dict) and x and all(map(_is_array, x.values())):
            check_inputs(x, *input_names(task))
            if hasattr(task, "backbone"):
                length = x["token_ids"].shape[1] if "token_ids" in x else None
                check_token_ids(x, task.backbone.vocabulary_size)
                if "segment_ids" in x and task.backbone.num_segments:
                    segments = np.asarray(x["segment_ids"])
                    check_range("segment_ids", segments, task.backbone.num_segments)
        numbers = task._num_labels(length) if isinstance(task, ChecksData) else None
        loss = getattr(self, "_loss", None) or self.loss
        if not isinstance(numbers, dict):
            numbers, y, loss = {"": numbers}, {"": y}, {"": loss}
        for name, number in numbers.items():
            labels, its_loss = (x.get(name) if isinstance(x, dict) else None for x in (y, loss))
            if number and _is_array(labels) and _is_sparse(its_loss):
                check_range("labels", np.asarray(labels), number)


def _is_array(value):
    return isinstance(value, np.ndarray) or (
        keras.ops.is_tensor(value) and hasattr(value, "__array__")
    )


def _is_sparse(loss):
    loss = keras.losses.get(loss) if isinstance(loss, str) else loss
    return (
        isinstance(loss, keras.losses.SparseCategoricalCrossentropy)
        or loss is keras.losses.sparse_categorical_crossentropy
        or getattr(loss, "takes_class_numbers", False)
    )
