"""Classifiers that start from the encoder of a preset."""

from keras_tupe import TupeBackbone, TupeTextClassifier, TupeTokenizer
from keras_tupe.models import keep_zeros
from training.presets.folder import preset_digest
from training.presets.load import load_preset


class Encoder:
    """The encoder of a preset, from which any number of classifiers can be made.

    Args:
        folder: the preset, of a masked language model, a classifier or an encoder.
        dropout: dropout rate of the classifiers, inside the encoder and before the last layer.
        position_file: the Python file that defines its positional method, or `None`.
        keep_zeros: whether kernels' weights that are zero stay so in training. Defaults to `False`.

    Raises:
        ValueError: if the preset cannot be loaded, or has no tokenizer.
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
