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
from keras_tupe.tokenizers.pack_text import framed, pack_text, prompt_problems


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
    strings, is_batch = as_batch(inputs)
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
    return finished(rows, is_batch)


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
    rows = finished(rows, is_batch)
    return rows, rows.pop("y"), rows.pop("w")


def causal_lm_inputs(tokenizer, x, *, sequence_length, **frame):
    """Model inputs of one text or a batch of texts, and the token after each.

    Args:
        tokenizer: a `WordPiece` or `SentencePieceBpe`.
        x: string, or batch of strings.
        sequence_length: length of the rows.
        **frame: `add_start_token` and `add_end_token` of `pack_text`.

    Returns:
        Tuple of the dictionary of `token_ids` and `padding_mask`, the labels int32 and the weights
        float32, all `(batch, sequence_length)`, or `(sequence_length,)` for one text.
    """
    strings, is_batch = as_batch(x)
    token_ids, mask = pack_text(
        tokenizer, tokenizer.tokenize(strings), sequence_length + 1, **frame
    )
    rows = {
        "token_ids": token_ids[:, :-1],
        "padding_mask": mask[:, :-1],
        "y": token_ids[:, 1:],
        "w": tf.cast(mask[:, 1:], tf.float32),
    }
    rows = finished(rows, is_batch)
    return rows, rows.pop("y"), rows.pop("w")


def whole_texts(tokenizer, x, *, sequence_length, **frame):
    """As `causal_lm_inputs` of a batch, in rows as long as the longest text, rounded up.

    Raises:
        ValueError: if a text has more tokens than `sequence_length`, and one to predict.
    """
    strings, _ = as_batch(x)
    lengths = framed(tokenizer, tokenizer.tokenize(strings), *frame.values()).row_lengths() - 1
    longest = max(1, int(tf.reduce_max(lengths)))
    if longest > sequence_length:
        text = strings.numpy()[int(tf.argmax(lengths))].decode(errors="replace")
        raise ValueError(
            f"A text must fit into the preprocessor's sequence_length={sequence_length}, since it "
            "is scored as a whole. Cut it, or make a preprocessor with longer rows. "
            f"Received: {text!r:.80} of {longest + 1} tokens"
        )
    rounded = min(-(-longest // 8) * 8, sequence_length)  # few lengths are few compilations
    return causal_lm_inputs(tokenizer, strings, sequence_length=rounded, **frame)


def prompts(tokenizer, x, *, sequence_length, add_start_token):
    """Model inputs of one prompt or a batch of prompts, that text can be added to.

    Args:
        tokenizer: a `WordPiece` or `SentencePieceBpe`.
        x: string, or batch of strings.
        sequence_length: length of the rows, the new tokens included.
        add_start_token: whether the start token comes first.

    Returns:
        Dictionary of `token_ids` and `padding_mask`, `(batch, sequence_length)`, or
        `(sequence_length,)` for one prompt.

    Raises:
        ValueError: in eager calls, for a prompt without a token, or without room after it.
    """
    strings, is_batch = as_batch(x)
    ids = tokenizer.tokenize(strings)
    lengths = framed(tokenizer, ids, add_start_token, False).row_lengths()
    if tf.executing_eagerly():
        for is_wrong, sentence in prompt_problems(ids, lengths, sequence_length):
            if bool(tf.reduce_any(is_wrong)):
                worst = int(tf.argmax(tf.cast(is_wrong, tf.int32)))
                raise ValueError(
                    f"{sentence} Received: {strings.numpy()[worst].decode(errors='replace')!r:.80} "
                    f"of {int(lengths[worst])} tokens"
                )
    token_ids, mask = pack_text(tokenizer, ids, sequence_length, add_start_token, False)
    return finished({"token_ids": token_ids, "padding_mask": mask}, is_batch)


def texts(tokenizer, token_ids, padding_mask):
    """Text of rows of ids without padding, of one row or of a batch.

    Args:
        tokenizer: a `WordPiece` or `SentencePieceBpe`.
        token_ids: integers `(batch, length)` or `(length,)`.
        padding_mask: integers or booleans of the same shape, 1 = token.

    Returns:
        A list of strings, or a string.
    """
    token_ids, mask = (keras.ops.convert_to_numpy(x) for x in (token_ids, padding_mask))
    if token_ids.ndim == 1:
        return texts(tokenizer, token_ids[None], mask[None])[0]
    rows = zip(token_ids, mask.astype(bool), strict=True)
    return detokenize(tokenizer, [ids[kept].tolist() for ids, kept in rows])


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


def labels_of_rows(y, sample_weight, rows):
    """One label and one weight for each row: given ones, or weights of 0 if there are no labels.

    Args:
        y: numbers `(batch,)`, or `None`.
        sample_weight: numbers `(batch,)`, or `None` for 1.
        rows: tensor `(batch, count)` of the rows, or `(count,)` of one text.

    Returns:
        int32 and float32, `(batch,)`, or `()` for one text.

    Raises:
        ValueError: if there is not one for each row.
    """
    shape = rows.shape[:-1]
    if y is None:
        zeros = tf.zeros_like(_as_tensor(rows)[..., 0])
        return _handed_out(tf.cast(zeros, "int32")), _handed_out(tf.cast(zeros, "float32"))
    labels = tf.cast(_as_tensor(y), "int32")
    weights = tf.ones_like(labels) if sample_weight is None else _as_tensor(sample_weight)
    for name, found in {"y": labels, "sample_weight": weights}.items():
        if not found.shape.is_compatible_with(shape):
            raise ValueError(
                f"`{name}` must have one number for each pair of texts. "
                f"Received: {name} of shape {tuple(found.shape)} for rows {tuple(rows.shape)}"
            )
    return _handed_out(labels), _handed_out(tf.cast(weights, "float32"))


def _as_tensor(value):
    is_foreign = keras.ops.is_tensor(value) and not tf.is_tensor(value)
    return tf.convert_to_tensor(keras.ops.convert_to_numpy(value) if is_foreign else value)


def _rows(tokenizer, x, segments, row_options):
    batches = [as_batch(part) for part in (x if isinstance(x, tuple) else (x,))]
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


def as_batch(inputs):
    """Returns strings as a tensor `(batch,)`, and whether they came as a batch.

    Args:
        inputs: string, or batch of strings.
    """
    strings = string_tensor(inputs)
    is_batch = strings.shape.rank != 0
    return (strings if is_batch else strings[tf.newaxis]), is_batch


def finished(rows, is_batch):
    """Returns rows as KerasHub hands them out, the only one of a text that came alone.

    Args:
        rows: dictionary of tensors `(batch, ...)`.
        is_batch: whether the texts came as a batch.
    """
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
