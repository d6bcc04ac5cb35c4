import keras
import numpy as np
import pytest

from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.trainer import InverseSquareRoot, LinearWarmupDecay, adamw


def test_learning_rate_rises_to_the_peak_and_falls_to_zero():
    schedule = LinearWarmupDecay(3.0, total_steps=12, warmup_steps=4)
    rates = [float(schedule(step)) for step in range(14)]
    rising, falling = [0.75, 1.5, 2.25, 3.0], [3.0 * left / 8 for left in range(8, 0, -1)]
    np.testing.assert_allclose(rates, [*rising, *falling, 0.0, 0.0], rtol=1e-6)
    again = LinearWarmupDecay.from_config(schedule.get_config())
    assert [float(again(step)) for step in range(14)] == rates


def test_learning_rate_without_warmup_starts_at_the_peak():
    assert float(LinearWarmupDecay(2.0, total_steps=5)(0)) == 2.0


def test_the_inverse_square_root_is_that_of_the_original_transformer():
    width, warmup = 512, 4000
    schedule = InverseSquareRoot((width * warmup) ** -0.5, warmup)
    again = InverseSquareRoot.from_config(schedule.get_config())
    for step in (1, 2, 1000, 3999, 4000, 4001, 16_000, 100_000):
        expected = width**-0.5 * min(step**-0.5, step * warmup**-1.5)  # eq. 3, from 1
        np.testing.assert_allclose(float(schedule(step - 1)), expected, rtol=1e-6)
        assert float(again(step - 1)) == float(schedule(step - 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"peak": 0.0, "warmup_steps": 5}, "`peak` must be a positive"),
        ({"peak": 1.0, "warmup_steps": 0}, "`warmup_steps` must be a positive integer"),
    ],
)
def test_impossible_inverse_square_roots_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        InverseSquareRoot(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"peak": 0.0, "total_steps": 5}, "`peak` must be a positive"),
        ({"peak": 1.0, "total_steps": 0}, "`total_steps` must be a positive integer"),
        ({"peak": 1.0, "total_steps": 5, "warmup_steps": 5}, "below `total_steps`"),
    ],
)
def test_impossible_schedules_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearWarmupDecay(**arguments)


def test_biases_and_layer_norms_do_not_decay_and_all_else_does():
    model = TupeMaskedLM(TupeBackbone(31, 1, 2, 6, 11, dropout=0.0, max_sequence_length=5))
    optimizer = adamw(1.0, weight_decay=0.5)
    optimizer.build(model.trainable_variables)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    optimizer.apply([keras.ops.zeros(v.shape) for v in model.trainable_variables])
    decayed = {
        variable.path
        for variable in model.trainable_variables
        if float(keras.ops.max(variable)) < 0.6
    }
    kept = {variable.path for variable in model.trainable_variables} - decayed
    assert kept == {
        variable.path
        for variable in model.trainable_variables
        if variable.path.endswith(("/bias", "/output_bias", "/gamma", "/beta"))
    }
    assert any(path.endswith("projection/embeddings") for path in decayed)


def test_gradients_are_clipped_by_their_common_norm():
    # Epsilon 1e-6 beside a tiny gradient makes AdamW's first step depend on its size.
    steps = []
    for clip_norm in (1e-6, None):
        variables = [keras.Variable(np.zeros(1, "float32")) for _ in range(2)]
        optimizer = adamw(1.0, weight_decay=0.0, clip_norm=clip_norm)
        optimizer.apply([keras.ops.convert_to_tensor([x]) for x in (3e-6, 4e-6)], variables)
        steps.append([float(keras.ops.squeeze(v)) for v in variables])
    clipped, free = steps

    def first_step(gradient):  # Keras adds epsilon to the moment before its correction
        moment = gradient * np.sqrt(1 - 0.999)
        return -moment / (moment + 1e-6)

    np.testing.assert_allclose(clipped, [first_step(6e-7), first_step(8e-7)], rtol=1e-3)
    np.testing.assert_allclose(free, [first_step(3e-6), first_step(4e-6)], rtol=1e-3)
