"""The state of a training, where it is not that of the tests of checkpoints."""

import keras
import numpy as np
import pytest
from trainer_cases import linear_model

import keras_tupe
from keras_tupe.trainer import Trainer
from keras_tupe.trainer.training_state import read_state, write_state


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_state_that_is_no_number_is_refused_and_changes_nothing(value):
    trainer = Trainer(linear_model())
    trainer.compile(keras.optimizers.SGD(0.1), loss="mse")
    trainer.optimizer.build(trainer.model.trainable_variables)
    before = read_state(trainer)
    name = next(name for name in before if name.endswith("kernel"))
    broken = {key: array.copy() + 1 if key == name else array for key, array in before.items()}
    broken[name][0, 0] = value
    with pytest.raises(ValueError, match=rf"Received: 1 of 5 values of .*{name}"):
        write_state(trainer, broken)
    for key, array in read_state(trainer).items():
        np.testing.assert_array_equal(array, before[key])


def test_encoder_and_decoder_of_a_model_of_pairs_are_told_apart():
    """Both have the same layers, by the same names; the token embedding is one."""
    models = keras_tupe.models
    model = models.TupeSeq2SeqLM(models.TupeSeq2SeqBackbone(11, 1, 2, 4, 8, max_sequence_length=5))
    trainer = Trainer(model)
    trainer.compile(keras.optimizers.SGD(0.1))
    state = read_state(trainer)
    weights = [name for name in state if name.startswith("model/") and "/seed/" not in name]
    assert len(weights) == len(model.weights)
    for side in ("encoder", "decoder"):
        state[f"model/{side}/embeddings_layer_norm/gamma"][:] = {"encoder": 2, "decoder": 3}[side]
    write_state(trainer, state)
    for part, value in ((model.backbone.encoder, 2), (model.backbone.decoder, 3)):
        gamma = keras.ops.convert_to_numpy(part.get_layer("embeddings_layer_norm").gamma)
        np.testing.assert_array_equal(gamma, value)
