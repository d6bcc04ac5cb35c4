"""Raw pairs of texts to masked rows of two segments."""

import keras
import keras_hub

from keras_tupe.models.presets import PresetClass
from keras_tupe.models.tupe_backbone import TupeBackbone
from keras_tupe.models.tupe_masked_lm_preprocessor import TupeMaskedLMPreprocessor
from keras_tupe.models.tupe_tokenizer import TupeTokenizer


# No `MaskedLMPreprocessor` of KerasHub: of two with one encoder its `from_preset` takes either.
@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeMaskedPairLMPreprocessor(PresetClass, keras_hub.models.Preprocessor):
    """Tokenizes pairs of texts, packs each into a row and hides some of their tokens.

    What a `TupeMaskedLMPreprocessor` makes of pairs, with segment ids, and the pairs' classes
    beside, for a `TupeMaskedPairLM`.

    Args:
        tokenizer: a `TupeTokenizer`.
        sequence_length, truncate: as of `TupeMaskedLMPreprocessor`.
        mask_selection_rate, mask_selection_length, mask_token_rate, random_token_rate: likewise.
        segments: whether `segment_ids` are made. Defaults to `True`; the model needs them.
        add_start_token: as of `TupeMaskedLMPreprocessor`.
        **kwargs: `name` and the other arguments of `keras_hub.models.Preprocessor`.

    Call arguments:
        x: tuple of two strings or of two batches of strings `(batch,)`; call with
            `((first, second), y)`.
        y: classes of the pairs, integers `(batch,)`; or `None`, where they are not known.
        sample_weight: weights of the pairs, numbers `(batch,)`; or `None` for 1.

    Returns:
        Tuple of a dictionary (`token_ids`, `padding_mask`, `segment_ids`, `mask_positions`), the
        labels and the weights: dictionaries of `masked_lm`, as of `TupeMaskedLMPreprocessor`, and
        `pair`, int32 and float32 `(batch,)`, of weight 0 where the classes are not known.

    Raises:
        TypeError, ValueError: as `TupeMaskedLMPreprocessor`.

    Example:
        >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
        >>> tokenizer = keras_tupe.TupeTokenizer(words)
        >>> preprocessor = TupeMaskedPairLMPreprocessor(tokenizer, sequence_length=12)
        >>> x, y, weights = preprocessor((["the cat", "cat"], ["sat", "the"]), [0, 1])
        >>> keras.ops.convert_to_numpy(x["segment_ids"]).tolist()[0], tuple(y["masked_lm"].shape)
        ([0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0], (2, 2))
        >>> keras.ops.convert_to_numpy(y["pair"]).tolist()
        [0, 1]

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """

    backbone_cls = TupeBackbone
    tokenizer_cls = TupeTokenizer

    def __init__(
        self,
        tokenizer,
        sequence_length=512,
        truncate="round_robin",
        mask_selection_rate=0.15,
        mask_selection_length=None,
        mask_token_rate=0.8,
        random_token_rate=0.1,
        segments=True,
        add_start_token=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self._masked = TupeMaskedLMPreprocessor(
            tokenizer,
            sequence_length=sequence_length,
            truncate=truncate,
            mask_selection_rate=mask_selection_rate,
            mask_selection_length=mask_selection_length,
            mask_token_rate=mask_token_rate,
            random_token_rate=random_token_rate,
            segments=segments,
            add_start_token=add_start_token,
        )

    @property
    def segments(self):
        """Whether `segment_ids` are made."""
        return self._masked.segments

    @property
    def add_start_token(self):
        """Whether rows begin with the start token."""
        return self._masked.add_start_token

    @property
    def sequence_length(self):
        """Length of the rows, in tokens, special ones included."""
        return self._masked.sequence_length

    @sequence_length.setter
    def sequence_length(self, value):
        self._masked.sequence_length = value

    def masked_lm(self):
        """Returns the `TupeMaskedLMPreprocessor` of the same settings, without classes."""
        return self._masked

    def build(self, input_shape):
        self._masked.build(input_shape)
        self.built = True

    def call(self, x, y=None, sample_weight=None):
        from keras_tupe.tokenizers import keras_hub_calls

        inputs, labels, weights = self._masked.call(x, y)
        pair, weight = keras_hub_calls.labels_of_rows(y, sample_weight, labels)
        return (
            inputs,
            {"masked_lm": labels, "pair": pair},
            {"masked_lm": weights, "pair": weight},
        )

    def get_config(self):
        return {**self._masked.get_config(), **super().get_config()}
