"""Base of every task, beside KerasHub's own."""

import keras_hub

from keras_tupe.models._compile_config import compile_from, with_progress
from keras_tupe.models._data_checks import ChecksData
from keras_tupe.models._inputs import check_optimizer, input_names
from keras_tupe.models.presets import PresetModel
from keras_tupe.models.tupe_backbone import TupeBackbone
from keras_tupe.trunk.inputs import check_inputs


class TupeTask(ChecksData, PresetModel):
    """First parent of the tasks, before the class of KerasHub: inputs, data and files are checked,
    and a `.keras` file holds how far the training was.
    """

    backbone_cls = TupeBackbone

    @classmethod
    def _config_parts(cls):
        return {"backbone": TupeBackbone, "preprocessor": keras_hub.models.Preprocessor}

    def call(self, inputs, training=None, mask=None):
        check_inputs(inputs, *input_names(self))
        if training:
            outputs = self._trained(inputs)
            if outputs is not None:
                return outputs
        return super().call(inputs, training=training, mask=mask)

    def _trained(self, inputs):
        """Returns the outputs in training if they need not all of the encoder's, else `None`."""

    def compile(self, optimizer="auto", *args, **kwargs):
        check_optimizer(optimizer, self)
        super().compile(optimizer, *args, **kwargs)

    def make_train_function(self, force=False):
        # Keras makes the slots in the first graph, which it then traces several times more
        if self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def get_compile_config(self):
        return with_progress(self, super().get_compile_config())

    def compile_from_config(self, config):
        compile_from(self, config)
