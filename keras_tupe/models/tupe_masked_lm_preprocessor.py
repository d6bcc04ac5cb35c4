"""Raw text to masked rows."""

import math

import keras
import keras_hub

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models.presets import PresetClass
from keras_tupe.models.tupe_backbone import TupeBackbone
from keras_tupe.models.tupe_tokenizer import TupeTokenizer


@keras.saving.register_keras_serializable(package="keras_tupe")
class TupeMaskedLMPreprocessor(PresetClass, keras_hub.models.MaskedLMPreprocessor):
    """Tokenizes texts, packs them into rows of fixed length and hides some of their tokens.

    The rows are those of `TupeTextClassifierPreprocessor`, one text (or pair) per row. **Text
    that is longer than `sequence_length` is cut at the end, without a warning.** Masks are
    drawn anew in every call, so every epoch has others. `keras.utils.set_random_seed` before
    the first call makes them repeatable, but for parallel maps of `tf.data` (and so `fit`), where
    batches draw in the order in which they happen to be processed. For the equations see
    `keras_tupe.tokenizers.mask_tokens`.

    Differences from the source: KerasHub draws random words from the whole vocabulary, special
    tokens included, and its two paths choose tokens by different rules. Here random words are
    uniform over ordinary pieces, special tokens are never chosen (as BERT), the number of
    chosen tokens is drawn as in fairseq and TUPE, and there is one path, TensorFlow's.

    Args:
        tokenizer: a `TupeTokenizer`.
        sequence_length: length of the rows, in tokens, special ones included. Defaults to 512.
        truncate: `"round_robin"` or `"waterfall"`, for pairs.
        mask_selection_rate: share of the ordinary tokens that is chosen, in (0, 1]. Defaults to
            0.15.
        mask_selection_length: slots per row for chosen tokens; more are not chosen. Defaults to
            as many as a full row can need.
        mask_token_rate: share of the chosen that becomes the mask token, in [0, 1]. Defaults to
            0.8.
        random_token_rate: share of the chosen that becomes a random piece, in [0, 1]. Defaults to
            0.1. The rest stays as it is.
        segments: whether `segment_ids` are made, for a backbone with `num_segments` > 0. Defaults
            to `False`.
        add_start_token: whether rows begin with the start token; a backbone with an untied [CLS]
            needs it. Defaults to `True`.
        **kwargs: `name` and the other arguments of `keras_hub.models.Preprocessor`.

    Call arguments:
        x: string, batch of strings `(batch,)`, or a tuple of two of them for pairs; then call
            with `((first, second), y=None)`.
        y, sample_weight: ignored, so that labeled data can be used.

    Returns:
        Tuple of a dictionary (`token_ids`, `padding_mask`, `mask_positions` and, on request,
        `segment_ids`), the labels int32 and the weights float32, both
        `(batch, mask_selection_length)`. Slots that are not used have position, label and
        weight 0.

    Raises:
        TypeError: if `x` is not text.
        ValueError: if a rate is out of its range, a pair does not fit together, or a row
            has no room for text.

    Example:
        >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat"]
        >>> preprocessor = TupeMaskedLMPreprocessor(TupeTokenizer(words), sequence_length=12)
        >>> x, y, weights = preprocessor(["the cat sat", "the cat"])
        >>> sorted(x), tuple(y.shape)
        (['mask_positions', 'padding_mask', 'token_ids'], (2, 2))

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
    """

    backbone_cls = TupeBackbone
    tokenizer_cls = TupeTokenizer

    # Seven arguments are KerasHub's own.
    def __init__(
        self,
        tokenizer,
        sequence_length=512,
        truncate="round_robin",
        mask_selection_rate=0.15,
        mask_selection_length=None,
        mask_token_rate=0.8,
        random_token_rate=0.1,
        segments=False,
        add_start_token=True,
        **kwargs,
    ):
        check_positive_integers(sequence_length=sequence_length)
        if mask_selection_length is not None:
            check_positive_integers(mask_selection_length=mask_selection_length)
        if not 0 < mask_selection_rate <= 1:
            raise ValueError(
                "`mask_selection_rate` must be a share above 0 and at most 1. "
                f"Received: mask_selection_rate={mask_selection_rate!r}"
            )
        rates = (mask_token_rate, random_token_rate)
        if min(rates) < 0 or sum(rates) > 1:
            raise ValueError(
                "`mask_token_rate` and `random_token_rate` must be shares, together at most 1. "
                f"Received: mask_token_rate={mask_token_rate!r}, "
                f"random_token_rate={random_token_rate!r}"
            )
        super().__init__(
            tokenizer,
            sequence_length=sequence_length,
            truncate=truncate,
            mask_selection_rate=mask_selection_rate,
            mask_selection_length=mask_selection_length,
            mask_token_rate=mask_token_rate,
            random_token_rate=random_token_rate,
            **kwargs,
        )
        self.segments = segments
        self.add_start_token = add_start_token

    @property
    def num_predictions(self):
        """Slots per row: `mask_selection_length`, or what a full row of one text can need."""
        if self.mask_selection_length is not None:
            return self.mask_selection_length
        return max(1, math.ceil(self.mask_selection_rate * (self.sequence_length - 2)))

    def build(self, input_shape):
        from keras_tupe.tokenizers import keras_hub_calls

        # The parent would make a packer and a mask generator of its own here.
        self._generator = keras_hub_calls.random_generator()
        self.built = True

    def call(self, x, y=None, sample_weight=None):
        from keras_tupe.tokenizers import keras_hub_calls

        keras_hub_calls.check_labels(y)
        return keras_hub_calls.masked_lm_inputs(
            self.tokenizer.op,
            x,
            self._generator,
            segments=self.segments,
            row_options={
                "sequence_length": self.sequence_length,
                "truncate": self.truncate,
                "add_start_token": self.add_start_token,
            },
            num_predictions=self.num_predictions,
            mask_selection_rate=self.mask_selection_rate,
            mask_token_rate=self.mask_token_rate,
            random_token_rate=self.random_token_rate,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "segments": self.segments,
            "add_start_token": self.add_start_token,
        }
