"""The base of preprocessors: a tokenizer, and rows that are made by it in one way."""

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.models.presets import PresetClass
from keras_tupe.models.tupe_backbone import TupeBackbone
from keras_tupe.models.tupe_tokenizer import TupeTokenizer


class TupePreprocessor(PresetClass):
    """First parent of every preprocessor, before KerasHub's class of its kind."""

    backbone_cls = TupeBackbone
    tokenizer_cls = TupeTokenizer
    own_options = ()  # arguments that KerasHub's class does not keep
    has_plain_rows = False  # whether a row is ids and masks alone, and padding means nothing

    def __init__(self, **given):
        lengths = {n: x for n, x in given.items() if n.endswith("sequence_length")}
        check_positive_integers(**lengths)
        own = {name: given.pop(name) for name in self.own_options}
        super().__init__(**given)
        for name, value in own.items():
            setattr(self, name, value)

    def build(self, input_shape):
        # KerasHub's classes would make packers of their own here.
        self.built = True

    def get_config(self):
        return {**super().get_config(), **{name: getattr(self, name) for name in self.own_options}}

    @property
    def _rows(self):
        """What makes rows, imported when the first text comes: it needs TensorFlow."""
        from keras_tupe.tokenizers import keras_hub_calls

        return keras_hub_calls


def arguments(given):
    """Returns the arguments of a constructor by name, of its `locals()`."""
    own = {n: x for n, x in given.items() if n not in ("self", "kwargs", "__class__")}
    return {**own, **given["kwargs"]}
