"""Raw text to rows for a model that predicts the next token."""

import keras
import keras_hub

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models._preprocessor import TupePreprocessor


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeCausalLMPreprocessor(TupePreprocessor, keras_hub.models.CausalLMPreprocessor):
    """Tokenizes texts and packs them into rows of fixed length, with the token after each as label.

    The rows are, by the kind of the tokenizer's vocabulary and padded **on the right**,

        WordPiece:     token_ids [CLS] A          labels A [SEP]
        SentencePiece: token_ids <s> A            labels A </s>

    **Text that is longer than `sequence_length` is cut at the end, without a warning.** So that
    token i stands at position i in every row there is no other side to pad.

    Differences from the source: KerasHub ends a text that it cuts with the end token all the same;
    here a text that is cut has none, since it goes on. There is one path, TensorFlow's.

    Args:
        tokenizer: a `TupeTokenizer`.
        sequence_length: length of the rows, in tokens, special ones included. Defaults to 512.
        add_start_token: whether rows begin with the start token; a backbone with an untied [CLS]
            needs it. Defaults to `True`.
        add_end_token: whether texts end with the end token, by which generation stops. Defaults to
            `True`.
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
        frame = {"add_start_token": add_start_token, "add_end_token": add_end_token}
        super().__init__(tokenizer, sequence_length=sequence_length, **frame, **kwargs)

    def call(self, x, y=None, sample_weight=None, sequence_length=None):
        self._rows.check_labels(y)
        return self._rows.next_token_rows(self, x, self._length(sequence_length))

    def generate_preprocess(self, x, sequence_length=None):
        """Returns the inputs of a model that goes on with prompts.

        Args:
            x: string, or batch of strings `(batch,)`.
            sequence_length: length of the rows, the tokens to come included. Defaults to that of
                the preprocessor.

        Returns:
            Dictionary of `token_ids` and `padding_mask`, 1 = token of the prompt, both int32
            `(batch, sequence_length)`; prompts stand on the left, without an end token.

        Raises:
            TypeError: if `x` is not text.
            ValueError: for a prompt without a token, and for one without room after it.
        """
        return self._rows.prompt_rows(self, x, self._length(sequence_length))

    def generate_postprocess(self, x):
        """Returns the texts of what was generated, without start, end and padding tokens.

        Args:
            x: dictionary of `token_ids` and `padding_mask`, as `generate_preprocess` makes it.

        Returns:
            List of strings, or a string for one row `(length,)`.
        """
        return self._rows.texts(self.tokenizer.op, x["token_ids"], x["padding_mask"])

    def whole_texts(self, x):
        """Returns rows of texts to be scored: as of a call, but no longer than they need.

        Args:
            x: batch of strings `(batch,)`.

        Raises:
            TypeError: if `x` is not text.
            ValueError: if a text is longer than `sequence_length`.
        """
        return self._rows.whole_text_rows(self, x)

    def _length(self, sequence_length):
        length = self.sequence_length if sequence_length is None else sequence_length
        check_positive_integers(sequence_length=length)
        return int(length)
