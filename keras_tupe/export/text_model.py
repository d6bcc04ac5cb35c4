"""The model with its tokenizer: text in."""

import tensorflow as tf

from keras_tupe.export._folding import FoldedEncoder
from keras_tupe.export._text_functions import (
    assertion,
    checked_parts,
    save_text_functions,
    text_signature,
)
from keras_tupe.export.encoder import as_float32, embedding, probabilities
from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models import TupeMaskedLM, TupeTextClassifier, TupeTextEmbedder

NO_TOKEN = "A text to embed must have at least one token"


def export_text_model(model, tokenizer, path, length=None, top=5):
    """Writes a model that takes strings, as a SavedModel for serving.

    A program that loads it must import `tensorflow_text` first, for the tokenizer's op; therefore
    it is a SavedModel of its own and not a signature of `export_encoder`. TensorFlow Serving has
    the op. Signatures, each with the input `text`, strings `(batch,)`; longer texts are truncated
    to `length` tokens:

    - `serving_default` -> float32 `sequence_output` `(batch, length, hidden_dim)`, `pooled_output`
      `(batch, hidden_dim)`, and int32 `padding_mask` `(batch, length)`.
    - `embed` -> `embedding` `(batch, hidden_dim)`: of a `TupeTextEmbedder` what it makes of the
      texts, and one without a token is an error of its batch, unless XLA compiles the graph; of
      other models the mean of the vectors of real tokens, special ones left out, scaled to length
      1, and zeros for a text without tokens.
    - `fill_mask`, for a masked language model -> for the first mask token written in each text
      `tokens` (strings) and `probabilities`, both `(batch, top)`, best first; `num_masks` int32
      `(batch,)`, the number of mask tokens found. Where it is 0 the other two mean nothing. In
      all other signatures a special token written in a text is text, as in training.
    - `classify`, for a classifier -> `probabilities` `(batch, num_classes)`: the softmax of the
      logits, what the model's own `activation` gives, or the number that a regression predicts.
    - `classify_pair`, for a classifier: the same with the inputs `text` and `text_pair`.

    Mixed lengths of texts are safe under a server's batching. Position terms are constants, as in
    `export_encoder`.

    Args:
        model: a `TupeBackbone`, `TupeMaskedLM`, `TupeTextClassifier` or `TupeTextEmbedder`.
        tokenizer: a tokenizer of `keras_tupe.tokenizers`, a `TupeTokenizer`, or one of the
            preprocessors, whose settings for rows are then kept (`truncate`, `add_start_token`).
        path: folder to make. It may exist if it is empty.
        length: tokens per text, special ones included. Defaults to the preprocessor's
            `sequence_length`, or the model's `max_sequence_length`.
        top: number of candidates of `fill_mask`, at most the number of ordinary pieces.

    Raises:
        TypeError: if `model` or `tokenizer` is something else.
        ValueError: if the vocabularies of model and tokenizer differ in size, or as
            `export_encoder`. Nothing is written then.
    """
    functions = text_functions(model, tokenizer, length, top)
    save_text_functions(functions, model, tokenizer, path)


def text_functions(model, tokenizer, length=None, top=5):
    """Returns what `export_text_model` makes signatures of, to be called in this process.

    Args:
        model, tokenizer, length, top: as of `export_text_model`.

    Returns:
        Dictionary of name -> `tf.function`, to be called with `text=` strings `(batch,)`. It
        computes with the weights that the model has when it is first called.

    Raises:
        TypeError, ValueError: as `export_text_model`.
    """
    backbone, packing, length = checked_parts(model, tokenizer, length)
    check_positive_integers(top=top)
    most = backbone.vocabulary_size - len(packing.tokenizer.special_ids)
    if isinstance(model, TupeMaskedLM) and top > most:
        raise ValueError(
            f"`top` must not exceed the number of ordinary pieces, {most}. Received: top={top}"
        )
    text_model = _TextModel(model, backbone, packing, length, top)
    functions = {"serving_default": text_model.serve, "embed": text_model.embed}
    if isinstance(model, TupeMaskedLM):
        functions["fill_mask"] = text_model.fill_mask
    if isinstance(model, TupeTextClassifier):
        functions |= {"classify": text_model.classify, "classify_pair": text_model.classify_pair}
    names = {"classify_pair": ("text", "text_pair")}
    return {
        name: text_signature(function, *names.get(name, ())) for name, function in functions.items()
    }


class _TextModel:
    """The functions behind the signatures."""

    def __init__(self, model, backbone, packing, length, top):
        self.model = model
        self.packing = packing
        self.tokenizer = packing.tokenizer
        self.length = length
        self.top = top
        self.pieces = tf.constant(self.tokenizer.pieces)
        self.encoder = FoldedEncoder(backbone, length)

    def _encode(self, *texts, masks=False):
        """Returns the model's inputs and its outputs in float32."""
        tokenize = self.tokenizer.tokenize_with_masks if masks else self.tokenizer.tokenize
        inputs = self.packing.rows([tokenize(text) for text in texts], self.length)
        return inputs, as_float32(self.encoder(inputs))

    def serve(self, text):
        inputs, outputs = self._encode(text)
        outputs.pop("default")
        return {**outputs, "padding_mask": inputs["padding_mask"]}

    def embed(self, text):
        inputs, outputs = self._encode(text)
        if isinstance(self.model, TupeTextEmbedder):
            return {"embedding": self._pooled(inputs, outputs)}
        special = [self.tokenizer.start_id, self.tokenizer.end_id, self.tokenizer.pad_id]
        is_special = tf.reduce_any(tf.equal(inputs["token_ids"][..., None], special), axis=-1)
        weights = tf.cast(~is_special, tf.float32)[..., None]
        total = tf.reduce_sum(outputs["sequence_output"] * weights, axis=1)
        return {"embedding": tf.math.l2_normalize(total, axis=-1)}

    def _pooled(self, inputs, outputs):
        special = 1 + self.packing.add_start_token
        fewest = tf.reduce_min(tf.reduce_sum(inputs["padding_mask"], axis=1))
        with tf.control_dependencies([assertion(fewest > special, NO_TOKEN)]):
            mask = tf.identity(inputs["padding_mask"])
        return embedding(self.model, outputs["sequence_output"], mask)

    def fill_mask(self, text):
        inputs, outputs = self._encode(text, masks=True)
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
            "probabilities": tf.cast(best.values, tf.float32),
            "num_masks": tf.reduce_sum(is_mask, axis=1),
        }

    def classify(self, text):
        return {"probabilities": self._probabilities(text)}

    def classify_pair(self, text, text_pair):
        return {"probabilities": self._probabilities(text, text_pair)}

    def _probabilities(self, *texts):
        _, outputs = self._encode(*texts)
        return probabilities(self.model, outputs["pooled_output"])
