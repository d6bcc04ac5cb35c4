"""Batches with a dictionary of labels, for a task with several outputs."""

import keras


class LabelsByName:
    """Part of a task, between `TupeTask` and the class of KerasHub, whose methods of one batch take
    labels and weights as one array only.
    """

    def train_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        batch = self._one_batch(x, y, sample_weight)
        return keras.Model.train_on_batch(self, *batch, **kwargs)

    def test_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        batch = self._one_batch(x, y, sample_weight)
        return keras.Model.test_on_batch(self, *batch, **kwargs)

    def _one_batch(self, *data):
        found = keras.utils.unpack_x_y_sample_weight(self.preprocess_samples(*data))
        convert = keras.ops.convert_to_tensor
        return [x if x is None else keras.tree.map_structure(convert, x) for x in found]
