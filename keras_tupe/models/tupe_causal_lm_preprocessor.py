"""Raw text to rows for a model that predicts the next token."""

import keras
import keras_hub

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models._preprocessor import TupePreprocessor, arguments


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeCausalLMPreprocessor(TupePreprocessor, keras_hub.models.CausalLMPreprocessor):
    """Tokenizes texts and packs them into rows of fixed length, with the token after each as label.

    The rows are, with WordPiece and padded on the right (SentencePiece has <s> and </s>),

        token_ids [CLS] A    labels A [SEP]

    **Text that is longer than `sequence_length` is cut at the end, without a warning.**

    Differences from the source: KerasHub ends a text that it cuts with the end token all the same;
    here a text that is cut has none, since it goes on. There is one path, TensorFlow's.

    Args:
        tokenizer: a `TupeTokenizer`.
        sequence_length: length of the rows, in tokens, special ones included.
        add_start_token: whether rows begin with the start token, as an untied [CLS] needs it.
        add_end_token: whether texts end with the end token, by which generation stops.
        **kwargs: `name` and the other arguments of `keras_hub.models.Preprocessor`.

    Call arguments:
        x: string, or batch of strings `(batch,)`.
        y, sample_weight: ignored, so that labeled data can be used.
        sequence_length: length of the rows of this call. Defaults to that of the preprocessor.

    Returns:
        Tuple of a dictionary (`token_ids` and `padding_mask`, 1 = token), the labels int32 and the
        weights float32, 1 = label, all `(batch, sequence_length)`.

    Raises:
        TypeError: if `x` is not text.
        ValueError: if text comes instead of labels, or a length is not a positive integer.

    Example:
        >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
        >>> tokenizer = keras_tupe.TupeTokenizer(words)
        >>> preprocessor = TupeCausalLMPreprocessor(tokenizer, sequence_length=5)
        >>> x, y, weights = preprocessor(["the cat sat"])
        >>> keras.ops.convert_to_numpy(x["token_ids"]).tolist()
        [[2, 5, 6, 7, 3]]
        >>> keras.ops.convert_to_numpy(y).tolist()
        [[5, 6, 7, 3, 0]]
    """

    segments = False

    def __init__(
        self,
        tokenizer,
        sequence_length=512,
        add_start_token=True,
        add_end_token=True,
        **kwargs,
    ):
        super().__init__(**arguments(locals()))

    def call(self, x, y=None, sample_weight=None, sequence_length=None):
        self._rows.check_labels(y)
        return self._rows.next_token_rows(self, x, self._length(sequence_length))

    def generate_preprocess(self, x, sequence_length=None):
        """Returns the inputs of a model that goes on with prompts, a dictionary as of a call.

        `x` is a string, or batch of strings; the rows have no end token, and `sequence_length`
        counts the tokens to come. A prompt without a token, or without room after it, is a
        `ValueError`.
        """
        return self._rows.prompt_rows(self, x, self._length(sequence_length))

    def generate_postprocess(self, x):
        """Returns the texts of what was generated, without start, end and padding tokens.

        `x` has `token_ids` and `padding_mask`, of a batch or of one row.
        """
        return self._rows.texts(self.tokenizer.op, x["token_ids"], x["padding_mask"])

    def whole_texts(self, x):
        """Returns rows of a batch `x` of texts to be scored, as of a call, as short as can be.

        A text that is longer than `sequence_length` is a `ValueError`.
        """
        return self._rows.whole_text_rows(self, x)

    def _length(self, sequence_length):
        length = self.sequence_length if sequence_length is None else sequence_length
        check_positive_integers(sequence_length=length)
        return int(length)
