"""The model with its tokenizer: text in."""

import tensorflow as tf

from keras_tupe.tokenizers import pack_segments


def export_text_model(model, tokenizer, path, length=None, top=5):
    """Writes a masked language model that takes strings, as a SavedModel.

    A program that loads it must import `tensorflow_text` first, for the tokenizer's op; therefore
    it is a SavedModel of its own and not a signature of `export_encoder`. Signatures, each with
    the input `text`, strings `(batch,)`; longer texts are truncated to `length` tokens:

    - `serving_default` -> float32 `sequence_output` `(batch, length, hidden_dim)`, `pooled_output`
      `(batch, hidden_dim)`, and int32 `padding_mask` `(batch, length)`.
    - `embed` -> `embedding` `(batch, hidden_dim)`: the mean of the vectors of real tokens,
      special ones left out, scaled to length 1.
    - `fill_mask` -> for the first mask token in each text `tokens` (strings) and `probabilities`,
      both `(batch, top)`, best first; `num_masks` int32 `(batch,)`, the number of mask
      tokens found. Where it is 0 the other two mean nothing.

    Args:
        model: a `TupeMaskedLM`.
        tokenizer: a tokenizer of `keras_tupe.tokenizers`.
        path: folder to write; it is made, and its files are replaced.
        length: tokens per text, special ones included. Defaults to the model's
            `max_sequence_length`.
        top: number of candidates of `fill_mask`.

    Raises:
        ValueError: if the vocabularies of model and tokenizer differ in size.
    """
    backbone = model.backbone
    length = backbone.max_sequence_length if length is None else length
    if tokenizer.vocabulary_size != backbone.vocabulary_size:
        raise ValueError(
            "The tokenizer must be the one that the model was trained with. Received: a vocabulary "
            f"of {tokenizer.vocabulary_size} pieces for a model of {backbone.vocabulary_size}"
        )
    root = tf.train.Checkpoint(tokenizer=tokenizer)
    root.variables = [variable.value for variable in model.variables]
    pieces = tf.constant(tokenizer.pieces)

    def encode(text):
        segments = (tokenizer.tokenize_with_masks(text),)
        token_ids, is_real, segment_ids = pack_segments(tokenizer, segments, length)
        inputs = {
            "token_ids": token_ids,
            "padding_mask": tf.cast(is_real, tf.int32),
            "segment_ids": segment_ids,
        }
        inputs = {tensor.name: inputs[tensor.name] for tensor in backbone.inputs}
        outputs = backbone(inputs, training=False)
        return inputs, {name: tf.cast(value, tf.float32) for name, value in outputs.items()}

    def serve(text):
        inputs, outputs = encode(text)
        return {**outputs, "padding_mask": inputs["padding_mask"]}

    def embed(text):
        inputs, outputs = encode(text)
        special = tf.constant([tokenizer.start_id, tokenizer.end_id, tokenizer.pad_id])
        is_special = tf.reduce_any(tf.equal(inputs["token_ids"][..., None], special), axis=-1)
        weights = tf.cast(~is_special, tf.float32)[..., None]
        return {
            "embedding": tf.math.l2_normalize(
                tf.reduce_sum(outputs["sequence_output"] * weights, axis=1), axis=-1
            )
        }

    def fill_mask(text):
        inputs, outputs = encode(text)
        is_mask = tf.cast(tf.equal(inputs["token_ids"], tokenizer.mask_id), tf.int32)
        first = tf.argmax(is_mask, axis=1, output_type=tf.int32)[:, None]
        logits = model.head(outputs["sequence_output"], mask_positions=first)[:, 0]
        # A blank is to be filled with a word.
        special = tf.constant(tokenizer.special_ids)
        is_special = tf.reduce_any(
            tf.equal(tf.range(backbone.vocabulary_size)[:, None], special), axis=1
        )
        probabilities = tf.nn.softmax(tf.where(is_special, logits.dtype.min, logits), axis=-1)
        best = tf.math.top_k(probabilities, k=top)
        return {
            "tokens": tf.gather(pieces, best.indices),
            "probabilities": best.values,
            "num_masks": tf.reduce_sum(is_mask, axis=1),
        }

    spec = [tf.TensorSpec([None], tf.string, name="text")]
    functions = {"serving_default": serve, "embed": embed, "fill_mask": fill_mask}
    signatures = {
        name: tf.function(function, input_signature=spec, autograph=False)
        for name, function in functions.items()
    }
    tf.saved_model.save(root, str(path), signatures=signatures)
