"""The runs of a probe: one for each method and seed."""

import dataclasses
import hashlib
import time

import keras
import numpy as np

from keras_tupe import positions
from keras_tupe.models import TupeBackbone, TupeMaskedLM
from training.command.grid import Cell
from training.finetune.engine import Recipe
from training.finetune.forward import Forward
from training.probe.order import kind_of
from training.probe.rows import ProbeRows

_TEST_TOKENS = 8192  # that the model gets at once
_ORDER_ROWS = 4


def cell_name(variant, seed):
    """Returns the folder of a run, relative to that of all."""
    return f"{variant.folder}/seed-{seed}"


class Runs:
    """Trains and tests one small encoder after the other.

    Args:
        settings: a `Settings` of `training.probe`.
        tuner: a `FineTuner`.

    Attributes:
        tests: dictionary: (task, length) -> `AskedRows`.
    """

    def __init__(self, settings, tuner):
        self.settings, self.tuner = settings, tuner
        rows = self._rows(0)
        self._vocabulary_size = rows.vocabulary.size
        self.tests = {
            (task, length): rows.test(task, length, settings.groups, settings.members)
            for length in settings.test_lengths
            for task in settings.task_names
        }

    def run(self, grid):
        """Does what is not done yet; returns dictionary: name of each run -> its metrics."""
        settings = self.settings
        same = {**settings.identity(), "rows_hash": self._rows_hash()}
        done = {
            cell_name(variant, seed): (variant, seed)
            for variant in settings.variants
            for seed in range(settings.seeds)
        }
        cells = [
            Cell(
                name,
                {**same, **_identity(variant), "seed": seed},
                positions.get(variant.position).relative_step_time[0],
            )
            for name, (variant, seed) in done.items()
        ]
        return grid.run(cells, lambda cell, folder: self._do(*done[cell.name], folder), _described)

    def _rows_hash(self):
        """Returns what tells the rows of these tasks from those of others by the same names."""
        found = hashlib.sha256()
        for rows in self.tests.values():
            for array in dataclasses.astuple(rows):
                found.update(array.tobytes())
        examples = self._rows(0)
        for index in range(4 * len(self.settings.task_names)):
            for part in examples.example(index):
                found.update(np.asarray(part, "int64").tobytes())
        return found.hexdigest()[:16]

    def _do(self, variant, seed, folder):
        """Trains, tests, and returns metrics; `log.csv` goes into `folder`."""
        settings, start = self.settings, time.monotonic()
        recipe = Recipe.of(settings, epochs=1, seed=seed)
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )
        model = self.tuner.fit(
            lambda: self.model(variant), self._rows(seed), recipe, folder, loss=loss
        )
        trained = time.monotonic() - start
        logits_of = _logits_of(model)
        scores = {}
        for (task, length), rows in self.tests.items():
            predictions = logits_of(rows.token_ids, argmax=True)
            scores.setdefault(task, {})[str(length)] = 100 * rows.accuracy(predictions)
        return {
            "parameters": model.count_params(),
            "order": self._order_of(model, variant),
            "scores": scores,
            "train_seconds": trained,
            "seconds": time.monotonic() - start,
        }

    def _order_of(self, model, variant):
        """Returns how a trained model knows order, one of `KINDS`."""
        settings, exact = self.settings, self.model(variant, "float64")
        exact.set_weights(model.get_weights())
        task, longest = settings.task_names[0], settings.test_lengths[-1]
        some = self.tests[task, longest].token_ids[:: settings.members][:_ORDER_ROWS]
        return kind_of(exact, _logits_of(exact), some, settings.length)

    def model(self, variant, dtype=None):
        """Returns a new `TupeMaskedLM` of a method, of the global dtype policy by default."""
        settings = self.settings
        backbone = TupeBackbone(
            self._vocabulary_size,
            settings.num_layers,
            settings.num_heads,
            settings.hidden_dim,
            4 * settings.hidden_dim,
            position=variant.position,
            position_options=variant.options,
            dropout=0.0,
            max_sequence_length=settings.table_length,
            normalize_first=True,
            initializer_range=settings.initializer_range,
            dtype=dtype,
        )
        return TupeMaskedLM(backbone)

    def _rows(self, seed):
        settings = self.settings
        return ProbeRows(
            settings.task_names, settings.length, settings.batch_size, settings.steps, seed
        )


def _identity(variant):
    """Returns what tells methods apart, JSON values; a file counts by its content."""
    source = positions.source_of(variant.position)
    found = {"position": variant.position, "position_options": variant.resolved()}
    if source is not None:
        found["position_file"] = hashlib.sha256(source).hexdigest()
    return found


def _logits_of(model):
    """Returns a function of token ids `(rows, length)`, without padding, to all logits."""
    forward = Forward(model)

    def logits_of(token_ids, argmax=False):
        size = max(_TEST_TOKENS // token_ids.shape[1], 1)
        found = []
        for start in range(0, len(token_ids), size):
            some = token_ids[start : start + size]
            everywhere = np.broadcast_to(np.arange(some.shape[1], dtype="int32"), some.shape)
            inputs = {
                "token_ids": some,
                "padding_mask": np.ones_like(some),
                "mask_positions": np.ascontiguousarray(everywhere),
            }
            logits = forward(inputs)
            found.append(logits.argmax(axis=-1) if argmax else logits)
        return np.concatenate(found)

    return logits_of


def _described(metrics):
    """Returns a run's mean scores by length, for a line."""
    by_length = {}
    for scores in metrics["scores"].values():
        for length, score in scores.items():
            by_length.setdefault(length, []).append(score)
    return ", ".join(f"{np.mean(found):.0f} % at {length}" for length, found in by_length.items())
