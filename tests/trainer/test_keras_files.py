"""Keras's own files of tasks; and its callbacks, with a trainer."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_tupe
from keras_tupe.trainer import LinearWarmupDecay, Trainer, adamw

# The pooler is no part of masked language modeling.
pytestmark = pytest.mark.filterwarnings("ignore:Gradients do not exist for variables:UserWarning")
TASKS = {
    "masked_lm": keras_tupe.TupeMaskedLM,
    "classifier": lambda backbone: keras_tupe.TupeTextClassifier(backbone, 2),
}


def task(name, **kwargs):
    return TASKS[name](keras_tupe.TupeBackbone(50, 1, 2, 8, 16, max_sequence_length=6, **kwargs))


def rows(name, count=2):
    ids = np.random.default_rng(0).integers(5, 50, (count, 6), "int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    if name == "masked_lm":
        return {**inputs, "mask_positions": ids[:, :2] % 6}, ids[:, :2]
    return inputs, ids[:, 0] % 2


def compiled(model, **kwargs):
    optimizer = adamw(LinearWarmupDecay(1e-2, 20, 2))
    model.compile(optimizer, weighted_metrics=["accuracy"], run_eagerly=True, **kwargs)
    return model


def fit(model, name, epochs=1, **kwargs):
    kwargs = {"batch_size": 2, "shuffle": False, "verbose": 0, **kwargs}
    return model.fit(*rows(name), epochs=epochs, **kwargs)


def state(model):
    """Returns the values of all that training changes."""
    variables = [*model.weights, *model.optimizer.variables]
    return [ops.convert_to_numpy(variable).copy() for variable in variables]


def assert_equal_states(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_from_a_file_trains_on_as_one_that_was_never_saved(tmp_path):
    name = "masked_lm"
    model = task(name)
    fit(compiled(model), name)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    assert len(loaded.optimizer.variables) > 2
    assert_equal_states(state(loaded), state(model))
    fit(loaded, name)
    fit(model, name)  # with dropout: the masks are the same too
    assert_equal_states(state(loaded), state(model))


def test_a_file_knows_which_weights_do_not_decay(tmp_path):
    for decay_all in (False, True):
        model = task("classifier")
        model.compile(adamw(0.1, weight_decay=0.5, decay_all=decay_all))
        model.optimizer.build(model.trainable_variables)
        path = tmp_path / f"{decay_all}.keras"
        model.save(path)
        optimizer = keras.models.load_model(path).optimizer
        decayed = {
            variable.path.split("/")[-1]
            for variable in optimizer._trainable_variables
            if optimizer._use_weight_decay(variable)
        }
        assert ("gamma" in decayed) is decay_all
        assert "embeddings" in decayed


def test_a_preset_holds_no_seed_of_dropout(tmp_path):
    model = compiled(task("masked_lm"))
    model.save_to_preset(tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.json")]
    assert texts
    assert not any("dropout_seeds" in text or "compile_config" in text for text in texts)


def test_callbacks_save_and_restore_the_model_of_a_trainer(tmp_path):
    """Told that a higher loss is better, they find the first epoch the best."""
    model, of, kept = task("classifier", dropout=0.0), keras.callbacks, []
    trainer = Trainer(model)
    trainer.compile(adamw(1e-2))
    best = {"monitor": "loss", "mode": "max"}
    callbacks = [
        of.LambdaCallback(on_epoch_end=lambda epoch, logs: kept.append(model.get_weights())),
        of.ModelCheckpoint(tmp_path / "{epoch}.keras"),
        of.ModelCheckpoint(tmp_path / "{epoch}.weights.h5", save_weights_only=True),
        of.EarlyStopping(**best, patience=1, restore_best_weights=True),
    ]
    losses = fit(trainer, "classifier", 5, callbacks=callbacks).history["loss"]
    assert losses[1] < losses[0]
    first, second = kept
    assert_equal_states(model.get_weights(), first)
    loaded = keras.models.load_model(tmp_path / "1.keras")
    assert_equal_states(loaded.get_weights(), first)
    loaded.load_weights(tmp_path / "2.weights.h5")
    assert_equal_states(loaded.get_weights(), second)
