"""Classifiers and span extractors that start from the encoder of a preset."""

from keras_tupe import (
    TupeBackbone,
    TupeSpanExtractor,
    TupeTextClassifier,
    TupeTokenizer,
    extend_positions,
    positions,
)
from keras_tupe.models import keep_zeros
from training.presets.folder import preset_digest
from training.presets.load import load_preset


class Encoder:
    """The encoder of a preset, from which any number of classifiers can be made.

    Args:
        folder: the preset, of a masked language model, a classifier or an encoder.
        dropout: dropout rate of the classifiers, inside the encoder and before the last layer.
        position_file: the Python file that defines its positional method, or `None`.
        keep_zeros: whether kernels' weights that are zero stay so in training.
    """

    def __init__(self, folder, dropout, position_file=None, keep_zeros=False):
        model, text = load_preset(folder)
        backbone = model if isinstance(model, TupeBackbone) else model.backbone
        if text is None:
            raise ValueError(
                "The preset must have a tokenizer, so that it can read the tasks' texts. Save it "
                "with its preprocessor: `model.preprocessor = ...` before `save_to_preset`. "
                f"Received: {str(folder)!r}"
            )
        self.tokenizer = text if isinstance(text, TupeTokenizer) else text.tokenizer
        self.position = backbone.position
        # longest row that it can take
        self.limit = backbone.max_sequence_length if backbone.has_length_limit else None
        self.has_segments = backbone.num_segments > 0
        # the policy is that of the run, and dropout the one that is asked for
        self._config = {**backbone.get_config(), "dropout": dropout, "dtype": None}
        self._dropout = dropout
        self._keeps_zeros = keep_zeros
        self._weights = backbone.get_weights()
        self.digest = preset_digest(folder, position_file)

    def classifier(self, num_classes):
        """Returns a new classifier, or a regression of one class: its last layer is drawn anew."""
        backbone = TupeBackbone.from_config(self._config)
        backbone.set_weights(self._weights)
        if self._keeps_zeros:
            keep_zeros(backbone)
        return TupeTextClassifier(backbone, num_classes, dropout=self._dropout)


def can_extend(method, options):
    """Returns whether an encoder can be made to take rows beyond its `max_sequence_length`."""
    return not method.has_length_limit(options) or bool(
        method.absolute_tables or options.get("k", "") is None
    )


def span_extractor(backbone, length, how):
    """Returns a `TupeSpanExtractor` with a copy of an encoder, and how it was made longer.

    Rows that are longer than the encoder's tables need a longer encoder: a table with a row per
    position is extended, as `how` says to `keras_tupe.extend_positions`; one with a row per
    distance stays as it is, and larger distances count as its largest one (Huang et al. 2020 clip
    so from the beginning). The note is a sentence, empty if nothing was done; an encoder that
    cannot be made longer is a ValueError.
    """
    limit, note = backbone.max_sequence_length, ""
    if backbone.has_length_limit and length > limit:
        if positions.get(backbone.position).absolute_tables:
            backbone = extend_positions(backbone, length, how)
            note = f"Position tables were made longer, from {limit} to {length} rows ({how})."
        elif backbone.position_options.get("k", "") is None:
            backbone = _clipped(backbone, length)
            note = f"Distances of {limit} tokens and more count as {limit - 1}."
        else:
            raise ValueError(
                "The tables of this positional method cannot be made longer. Choose shorter rows. "
                f"Received: position={backbone.position!r}, max_sequence_length={limit}, "
                f"length={length}"
            )
    return TupeSpanExtractor(backbone), note


def _clipped(backbone, length):
    """The same encoder with distances that end where its table does."""
    options = {**backbone.position_options, "k": backbone.max_sequence_length - 1}
    longer = {"position_options": options, "max_sequence_length": length}
    clipped = TupeBackbone.from_config({**backbone.get_config(), **longer})
    clipped.set_weights(backbone.get_weights())
    return clipped
