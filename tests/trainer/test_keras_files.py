"""Keras's own files and callbacks, with tasks."""

import csv

import keras
import numpy as np
import pytest
from keras import ops

import keras_tupe
from keras_tupe.trainer import LinearWarmupDecay, adamw

# The pooler is no part of masked language modeling, nor of spans.
pytestmark = pytest.mark.filterwarnings("ignore:Gradients do not exist for variables:UserWarning")
slow = pytest.mark.slow
TASKS = {
    "masked_lm": keras_tupe.TupeMaskedLM,
    "classifier": lambda backbone: keras_tupe.TupeTextClassifier(backbone, 2),
    "extractor": keras_tupe.TupeSpanExtractor,
}


def task(name, **kwargs):
    return TASKS[name](keras_tupe.TupeBackbone(50, 1, 2, 8, 16, max_sequence_length=6, **kwargs))


def rows(name, count=2):
    ids = np.random.default_rng(0).integers(5, 50, (count, 6), "int32")
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    if name == "masked_lm":
        return {**inputs, "mask_positions": ids[:, :2] % 6}, ids[:, :2]
    return inputs, ids[:, 0] % 2 if name == "classifier" else ids[:, :2] % 6


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


@pytest.mark.parametrize(
    "name",
    ["masked_lm", *(pytest.param(n, marks=slow) for n in TASKS if n != "masked_lm")],
)
def test_a_model_from_a_file_trains_on_as_one_that_was_never_saved(name, tmp_path):
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


def test_a_model_that_was_not_trained_comes_back_without_a_warning(tmp_path):
    task("classifier").save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.compiled
    assert not loaded.optimizer.built


def test_a_preset_holds_no_seed_of_dropout(tmp_path):
    model = compiled(task("masked_lm"))
    model.save_to_preset(tmp_path)
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.json")]
    assert texts
    assert not any("dropout_seeds" in text or "compile_config" in text for text in texts)


class Weights(keras.callbacks.Callback):
    """Keeps the model's weights after each epoch."""

    def __init__(self):
        super().__init__()
        self.values = []

    def on_epoch_end(self, epoch, logs=None):
        self.values.append([value.copy() for value in self.model.get_weights()])


def test_callbacks_of_keras_work(tmp_path, tensorflow):
    pytest.importorskip("tensorboard", reason="Keras's callback writes with TensorBoard's package")
    model = task("classifier")
    model.compile(adamw(1e-2), weighted_metrics=["accuracy"], run_eagerly=True)
    weights, of = Weights(), keras.callbacks
    # told that a higher loss is better, they find the first epoch the best
    watched = {"monitor": "val_loss", "mode": "max"}
    callbacks = [
        weights,
        of.ModelCheckpoint(tmp_path / "{epoch}.keras"),
        of.ModelCheckpoint(tmp_path / "{epoch}.weights.h5", save_weights_only=True),
        of.ModelCheckpoint(tmp_path / "best.keras", **watched, save_best_only=True),
        of.ReduceLROnPlateau(**watched, patience=1, factor=0.5),
        of.CSVLogger(tmp_path / "log.csv"),
        of.TensorBoard(tmp_path / "tensorboard", histogram_freq=1),
        of.EarlyStopping(**watched, patience=1, restore_best_weights=True),
    ]
    data = {"validation_data": rows("classifier"), "callbacks": callbacks}
    history = fit(model, "classifier", 5, **data).history
    first, second = weights.values
    assert history["val_loss"][1] < history["val_loss"][0]
    assert_equal_states(model.get_weights(), first)
    assert float(model.optimizer.learning_rate) == pytest.approx(0.005)
    with open(tmp_path / "log.csv", encoding="utf-8", newline="") as file:
        logged = [float(row["loss"]) for row in csv.DictReader(file)]
    assert logged == pytest.approx(history["loss"])
    for path, wanted in (("1.keras", first), ("2.keras", second), ("best.keras", first)):
        loaded = keras.models.load_model(tmp_path / path)
        assert_equal_states(loaded.get_weights(), wanted)
    loaded.load_weights(tmp_path / "2.weights.h5")
    assert_equal_states(loaded.get_weights(), second)
    for part in ("train", "validation"):
        tags = {
            value.tag
            for file in (tmp_path / "tensorboard" / part).glob("events.out.tfevents.*")
            for event in tensorflow.compat.v1.train.summary_iterator(str(file))
            for value in event.summary.value
        }
        assert "epoch_loss" in tags


class Stop(keras.callbacks.Callback):
    """Ends a training as a lost machine does."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def test_backup_and_restore_goes_on_where_a_training_was_ended(tmp_path):
    def run(epochs, callbacks):
        keras.utils.set_random_seed(3)
        model = compiled(task("extractor", dropout=0.0))
        fit(model, "extractor", epochs, callbacks=callbacks)
        return state(model)

    def backup():
        return keras.callbacks.BackupAndRestore(tmp_path / "backup")

    with pytest.raises(KeyboardInterrupt):
        run(2, [backup(), Stop()])
    assert_equal_states(run(2, [backup()]), run(2, []))
