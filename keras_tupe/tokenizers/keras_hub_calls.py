"""KerasHub's calling conventions over the tokenizers of this package.

KerasHub layers take one string or a batch, a tuple for a pair of texts, and hand out lists,
strings and tensors of the Keras backend in plain Python, but TensorFlow tensors inside
`tf.data` maps and `tf.function`s.
"""

import random

import keras
import tensorflow as tf

from keras_tupe.tokenizers._batches import holds_strings, string_tensor
from keras_tupe.tokenizers.mask_tokens import mask_tokens
from keras_tupe.tokenizers.pack_segments import pack_segments


def tokenize(tokenizer, inputs, sequence_length=None, dtype="int32"):
    """Ids of one string `(pieces,)` or of a batch `(batch, (pieces))`.

    Args:
        tokenizer: a `WordPiece`, `SentencePieceBpe` or `ByteLevelBpe`.
        inputs: string, or batch of strings.
        sequence_length: optional length to which ids are cut or padded.
        dtype: integer type of the ids.

    Returns:
        Lists of ids for a batch without `sequence_length`, otherwise a tensor.
    """
    strings, is_batch = _as_batch(inputs)
    ids = tf.cast(tokenizer.tokenize(strings), dtype)
    if sequence_length is not None:
        padding = tf.cast(tokenizer.pad_id, dtype)
        ids = ids.to_tensor(padding, shape=[None, sequence_length])
    return _handed_out(ids if is_batch else ids[0])


def detokenize(tokenizer, inputs):
    """Text of one sequence of ids `(length,)` or of a batch `(batch, length)`.

    Args:
        tokenizer: a `WordPiece`, `SentencePieceBpe` or `ByteLevelBpe`.
        inputs: integers; lists, arrays or tensors.

    Returns:
        A string or a list of strings.
    """
    if not isinstance(inputs, (list, tuple, tf.Tensor, tf.RaggedTensor)):
        inputs = keras.ops.convert_to_numpy(inputs)
    if isinstance(inputs, (list, tuple)):
        is_batch = bool(inputs) and hasattr(inputs[0], "__len__")
        inputs = [list(row) for row in inputs] if is_batch else list(inputs)
    else:
        is_batch = len(inputs.shape) != 1
    if is_batch:
        return _handed_out(tokenizer.detokenize(inputs))
    row = [inputs] if isinstance(inputs, list) else inputs[tf.newaxis]
    return _handed_out(tokenizer.detokenize(row)[0])


def classifier_inputs(tokenizer, x, *, segments, **row_options):
    """Model inputs of one text, a batch of texts, or a tuple of two batches (pairs).

    `row_options` are those of `pack_segments`.

    Returns:
        Dictionary of `token_ids`, `padding_mask` and, if `segments`, `segment_ids`, each
        `(batch, sequence_length)`, or `(sequence_length,)` for one text.
    """
    rows, is_batch = _rows(tokenizer, x, segments, row_options)
    return _finished(rows, is_batch)


def random_generator():
    """A source of seeds that goes on from epoch to epoch, seeded by Python's `random`.

    TensorFlow's own random ops would start over with every pass over a dataset, once a seed
    is set (`keras.utils.set_random_seed`): the same masks in every epoch.
    """
    # Outside of the graph of a dataset's map, and on the CPU, where the map runs.
    with tf.init_scope(), tf.device("CPU:0"):
        return tf.random.Generator.from_seed(random.getrandbits(31))


def masked_lm_inputs(tokenizer, x, generator, *, segments, row_options, **mask_options):
    """As `classifier_inputs`, with masks by the next seed of a `random_generator`.

    Returns:
        Tuple of the model's inputs with `mask_positions`, the labels and the weights; the last
        three `(batch, num_predictions)`. `row_options` are those of `pack_segments`, and
        `mask_options` those of `mask_tokens`.
    """
    rows, is_batch = _rows(tokenizer, x, segments, row_options)
    token_ids, positions, labels, weights = mask_tokens(
        rows["token_ids"], tokenizer, generator.make_seeds()[:, 0], **mask_options
    )
    rows |= {"token_ids": token_ids, "mask_positions": positions, "y": labels, "w": weights}
    rows = _finished(rows, is_batch)
    return rows, rows.pop("y"), rows.pop("w")


def check_labels(y):
    """Refuses text as labels: Keras reads a bare tuple of two as (x, y).

    Raises:
        ValueError: if `y` holds strings.
    """
    if y is not None and holds_strings(y):
        raise ValueError(
            "Labels must be numbers, but text came instead: Keras reads a bare tuple of two "
            "as (x, y). Pass a pair of texts as preprocessor((first, second), y=None), and in a "
            f"dataset as ((first, second), labels). Received: y={y!r:.80}"
        )


def _rows(tokenizer, x, segments, row_options):
    batches = [_as_batch(part) for part in (x if isinstance(x, tuple) else (x,))]
    if len({is_batch for _, is_batch in batches}) > 1:
        raise ValueError(
            "The two texts of a pair must be two strings or two batches of strings. Received: "
            "one of each"
        )
    token_ids, padding_mask, segment_ids = pack_segments(
        tokenizer,
        tuple(tokenizer.tokenize(strings) for strings, _ in batches),
        **row_options,
    )
    rows = {"token_ids": token_ids, "padding_mask": padding_mask}
    return rows | ({"segment_ids": segment_ids} if segments else {}), batches[0][1]


def _as_batch(inputs):
    strings = string_tensor(inputs)
    is_batch = strings.shape.rank != 0
    return (strings if is_batch else strings[tf.newaxis]), is_batch


def _finished(rows, is_batch):
    return {name: _handed_out(row if is_batch else row[0]) for name, row in rows.items()}


def _handed_out(value):
    if not tf.executing_eagerly():
        return value
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    if value.dtype == tf.string:
        value = value.numpy()
        if isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")
        return [text.decode("utf-8", errors="replace") for text in value]
    is_own = keras.backend.backend() == "tensorflow"
    return value if is_own else keras.ops.convert_to_tensor(value.numpy())
