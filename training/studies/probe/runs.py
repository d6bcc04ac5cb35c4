"""The runs of a probe: one small encoder for each method and seed, trained and tested."""

import dataclasses
import functools
import hashlib

import keras
import numpy as np

from keras_tupe import positions
from keras_tupe.models import TupeBackbone, TupeMaskedLM
from training.finetune.engine import FineTuner, Recipe
from training.finetune.forward import Forward
from training.machine.devices import rows_per_part
from training.studies.probe.ceilings import kind_of
from training.studies.probe.report import report
from training.studies.probe.rows import ProbeRows
from training.study.folder import method_identity
from training.study.study import Run, Work

_TEST_TOKENS = 8192  # that the model gets at once
_ORDER_ROWS = 4


class Probe(Work):
    """Trains and tests one small encoder after the other; see `Work`."""

    def __init__(self, settings):
        super().__init__(settings)
        self._vocabulary_size = self._rows(0).vocabulary.size

    @functools.cached_property
    def _tuner(self):
        settings = self.settings
        tuner = FineTuner(settings.strategy, settings.xla, deterministic=settings.deterministic)
        keras.config.set_dtype_policy(settings.precision)
        rows_per_part(settings.batch_size, tuner.machine, 1)
        return tuner

    @functools.cached_property
    def tests(self):
        """Dictionary: (task, length) -> `AskedRows`."""
        settings, rows = self.settings, self._rows(0)
        return {
            (task, length): rows.test(task, length, settings.groups, settings.members)
            for length in settings.test_lengths
            for task in settings.task_names
        }

    def plan(self, results):
        """Yields a run for each method and seed."""
        settings = self.settings
        shared = {**settings.identity(), "rows_hash": self._rows_hash}
        for variant in settings.variants:
            for seed in range(settings.seeds):
                yield Run(
                    f"{variant.folder}/seed-{seed}",
                    functools.partial(self._do, variant, seed),
                    {"position": variant.label, "seed": seed},
                    shared,
                    {**method_identity(variant), "seed": seed},
                    work=positions.get(variant.position).relative_step_time[0],
                )

    def described(self, found):
        """Returns a run's mean scores by length, for a line."""
        by_length = {}
        for row in found["scores"]:
            by_length.setdefault(row["length"], []).append(row["value"])
        return ", ".join(f"{np.mean(x):.0f} % at {length}" for length, x in by_length.items())

    def report(self, results):
        """Returns the report, with what cannot be."""
        return report(self.settings, results, self.tests)

    @functools.cached_property
    def _rows_hash(self):
        """What tells the rows of these tasks from those of others by the same names."""
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
        """Trains and tests; `log.csv` goes into `folder`."""
        recipe = Recipe.of(self.settings, epochs=1, seed=seed, warmup=0.1, beta_2=0.98)
        loss = keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )
        model = self._tuner.fit(
            lambda: self.model(variant), self._rows(seed), recipe, folder, loss=loss
        )
        logits_of, scores = _logits_of(model), []
        for (task, length), rows in self.tests.items():
            value = 100 * rows.accuracy(logits_of(rows.token_ids, argmax=True))
            scores.append({"score": task, "length": length, "value": value})
        return {
            "parameters": model.count_params(),
            "order": self._order_of(model, variant),
            "sees_order": positions.get(variant.position).sees_order,
            "scores": scores,
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
            initializer_range=0.1,
            dtype=dtype,
        )
        return TupeMaskedLM(backbone)

    def _rows(self, seed):
        settings = self.settings
        return ProbeRows(
            settings.task_names, settings.length, settings.batch_size, settings.steps, seed
        )


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
