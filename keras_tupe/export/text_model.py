"""The model with its tokenizer: text in."""

import tensorflow as tf

from keras_tupe.export._checks import check_length, check_model, check_tokenizer
from keras_tupe.export._folders import new_export
from keras_tupe.export._folding import FoldedEncoder
from keras_tupe.export.encoder import as_float32, probabilities
from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models import TupeMaskedLM, TupeTextClassifier
from keras_tupe.tokenizers import pack_segments


def export_text_model(model, tokenizer, path, length=None, top=5):
    """Writes a model that takes strings, as a SavedModel for serving.

    A program that loads it must import `tensorflow_text` first, for the tokenizer's op; therefore
    it is a SavedModel of its own and not a signature of `export_encoder`. TensorFlow Serving has
    the op. Signatures, each with the input `text`, strings `(batch,)`; longer texts are truncated
    to `length` tokens:

    - `serving_default` -> float32 `sequence_output` `(batch, length, hidden_dim)`, `pooled_output`
      `(batch, hidden_dim)`, and int32 `padding_mask` `(batch, length)`.
    - `embed` -> `embedding` `(batch, hidden_dim)`: the mean of the vectors of real tokens,
      special ones left out, scaled to length 1.
    - `fill_mask`, for a masked language model -> for the first mask token in each text `tokens`
      (strings) and `probabilities`, both `(batch, top)`, best first; `num_masks` int32 `(batch,)`,
      the number of mask tokens found. Where it is 0 the other two mean nothing.
    - `classify`, for a classifier -> `probabilities` `(batch, num_classes)`: the softmax of the
      logits, what the model's own `activation` gives, or the number that a regression predicts.
    - `classify_pair`, for a classifier: the same with the inputs `text` and `text_pair`.

    Mixed lengths of texts are safe under a server's batching. Position terms are constants, as in
    `export_encoder`.

    Args:
        model: a `TupeBackbone`, `TupeMaskedLM` or `TupeTextClassifier`.
        tokenizer: a tokenizer of `keras_tupe.tokenizers`, or a `TupeTokenizer`.
        path: folder to make. It may exist if it is empty.
        length: tokens per text, special ones included. Defaults to the model's
            `max_sequence_length`.
        top: number of candidates of `fill_mask`, at most the vocabulary's size.

    Raises:
        TypeError: if `model` is something else.
        ValueError: if the vocabularies of model and tokenizer differ in size, or as
            `export_encoder`. Nothing is written then.
    """
    backbone = check_model(model)
    length = check_length(backbone, length)
    tokenizer = check_tokenizer(tokenizer, backbone)
    check_positive_integers(top=top)
    if top > backbone.vocabulary_size:
        raise ValueError(
            "`top` must not exceed the size of the vocabulary, "
            f"{backbone.vocabulary_size}. Received: top={top}"
        )
    text_model = _TextModel(model, backbone, tokenizer, length, top)
    functions = {"serving_default": text_model.serve, "embed": text_model.embed}
    if isinstance(model, TupeMaskedLM):
        functions["fill_mask"] = text_model.fill_mask
    if isinstance(model, TupeTextClassifier):
        functions |= {"classify": text_model.classify, "classify_pair": text_model.classify_pair}
    names = {"classify_pair": ("text", "text_pair")}
    signatures = {
        name: tf.function(
            function,
            input_signature=[
                tf.TensorSpec([None], tf.string, name=text) for text in names.get(name, ("text",))
            ],
            autograph=False,
        )
        for name, function in functions.items()
    }
    root = tf.train.Checkpoint(tokenizer=tokenizer)
    root.variables = [variable.value for variable in model.variables]
    with new_export(path) as folder:
        tf.saved_model.save(root, str(folder), signatures=signatures)


class _TextModel:
    """The functions behind the signatures."""

    def __init__(self, model, backbone, tokenizer, length, top):
        self.model = model
        self.tokenizer = tokenizer
        self.length = length
        self.top = top
        self.pieces = tf.constant(tokenizer.pieces)
        self.encoder = FoldedEncoder(backbone, length)

    def _encode(self, *texts):
        """Returns the model's inputs and its outputs in float32."""
        segments = tuple(self.tokenizer.tokenize_with_masks(text) for text in texts)
        rows = pack_segments(self.tokenizer, segments, self.length)
        inputs = dict(zip(("token_ids", "padding_mask", "segment_ids"), rows, strict=True))
        return inputs, as_float32(self.encoder(inputs))

    def serve(self, text):
        inputs, outputs = self._encode(text)
        outputs.pop("default")
        return {**outputs, "padding_mask": inputs["padding_mask"]}

    def embed(self, text):
        inputs, outputs = self._encode(text)
        special = [self.tokenizer.start_id, self.tokenizer.end_id, self.tokenizer.pad_id]
        is_special = tf.reduce_any(tf.equal(inputs["token_ids"][..., None], special), axis=-1)
        weights = tf.cast(~is_special, tf.float32)[..., None]
        total = tf.reduce_sum(outputs["sequence_output"] * weights, axis=1)
        return {"embedding": tf.math.l2_normalize(total, axis=-1)}

    def fill_mask(self, text):
        inputs, outputs = self._encode(text)
        is_mask = tf.cast(tf.equal(inputs["token_ids"], self.tokenizer.mask_id), tf.int32)
        first = tf.argmax(is_mask, axis=1, output_type=tf.int32)[:, None]
        logits = self.model.head(outputs["sequence_output"], mask_positions=first)[:, 0]
        # A blank is to be filled with a word.
        special = tf.constant(self.tokenizer.special_ids)
        is_special = tf.reduce_any(tf.equal(tf.range(len(self.pieces))[:, None], special), axis=1)
        shares = tf.nn.softmax(tf.where(is_special, logits.dtype.min, logits), axis=-1)
        best = tf.math.top_k(shares, k=self.top)
        return {
            "tokens": tf.gather(self.pieces, best.indices),
            "probabilities": best.values,
            "num_masks": tf.reduce_sum(is_mask, axis=1),
        }

    def classify(self, text):
        return {"probabilities": self._probabilities(text)}

    def classify_pair(self, text, text_pair):
        return {"probabilities": self._probabilities(text, text_pair)}

    def _probabilities(self, *texts):
        _, outputs = self._encode(*texts)
        return probabilities(self.model, outputs["pooled_output"])
