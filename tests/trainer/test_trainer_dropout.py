"""Dropout masks are a function of seed, step and part."""

import keras
import numpy as np
import pytest
from trainer_cases import ROWS, assert_same_state, mask_trainer, masks_of, state_of

from keras_tupe.layers import Dropout


@pytest.mark.parametrize("layer", [keras.layers.Dropout, Dropout])
def test_every_step_and_every_part_draws_another_mask(layer):
    masks = masks_of(mask_trainer(layer, micro_batches=2), num_steps=3)
    assert 0.4 < masks.mean() < 0.6
    rows = masks.reshape(-1, masks.shape[-1])
    assert len(np.unique(rows, axis=0)) == len(rows) == 24


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_the_masks_are_those_of_the_equation(micro_batches, num_replicas):
    """So that replicas draw what micro-batches would."""
    trainer = mask_trainer(micro_batches=micro_batches)
    seed, _ = keras.ops.convert_to_numpy(trainer.seeds[0].value)
    is_jax = keras.backend.backend() == "jax"  # which has one part on all devices
    parts = micro_batches if is_jax else micro_batches * num_replicas
    ones, expected = np.ones((ROWS, 67), "float32"), np.zeros((2, ROWS, 67), bool)
    generator = keras.random.SeedGenerator(0)
    for step in range(2):
        for part in range(parts):
            shift = np.array([-1640531535 * part, 1024 * step]).astype("int32")  # modulo 2**32
            state = np.array([seed, 0], "int64") + shift
            generator.state.assign(state.astype(generator.state.dtype))
            kept = keras.random.dropout(ones[: ROWS // parts], 0.5, seed=generator)
            rows = np.arange(part, ROWS, parts)
            if not is_jax:
                rows = np.arange(part * ROWS // parts, (part + 1) * ROWS // parts)
            expected[step, rows] = keras.ops.convert_to_numpy(kept) > 0
    np.testing.assert_array_equal(masks_of(trainer, 2), expected)


def test_a_resumed_run_draws_the_masks_and_gets_the_weights_of_the_unkilled_one():
    whole, killed = mask_trainer(), mask_trainer()
    keras.utils.set_random_seed(99)
    resumed = mask_trainer()  # with other seeds, until they are restored
    restore(killed, whole)
    expected = masks_of(whole, 5)
    first = masks_of(killed, 2)
    assert not np.array_equal(masks_of(resumed, 2), first), "the same seeds by chance"
    restore(resumed, killed)
    assert resumed.step == 2
    np.testing.assert_array_equal(np.concatenate([first, masks_of(resumed, 3)]), expected)
    assert resumed.step == 5
    assert_same_state(state_of(resumed), state_of(whole))


def restore(trainer, other):
    for name, variable in other.state_variables.items():
        trainer.state_variables[name].assign(keras.ops.convert_to_numpy(variable))


def test_evaluation_draws_no_masks_and_counts_no_steps():
    trainer = mask_trainer()
    (gains,) = trainer.model.trainable_variables
    gains.assign(np.ones(gains.shape))
    inputs = np.ones((4, *gains.shape), "float32")
    assert trainer.evaluate(inputs, np.zeros(4))["loss"] == gains.shape[0]
    assert trainer.step == 0
