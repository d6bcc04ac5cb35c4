"""One run of `training.finetune_squad`: a seed."""

import copy
import time

import keras

from keras_tupe import TupeTextClassifierPreprocessor
from keras_tupe._json_file import read_json_object
from keras_tupe.data import squad_n_best, write_json
from keras_tupe.metrics import squad_scores
from training.command.grid import Cell
from training.finetune.engine import Recipe
from training.finetune_squad.data import rows_of, spread
from training.presets.span_extractor import span_extractor
from training.pretrain.progress import Progress

PREDICTIONS, N_BEST, PRESET = "predictions.json", "nbest.json", "preset"


class Runs:
    """Does the runs of a command.

    Args:
        settings: a `Settings` of `training.finetune_squad`.
        tuner: a `FineTuner`.
        encoder: an `Encoder`.
        data: dictionary: `"train"` and `"dev"` -> `Questions`.
        windows: dictionary of the same names -> `SquadWindows`.
    """

    def __init__(self, settings, tuner, encoder, data, windows):
        self.settings = settings
        self.tuner = tuner
        self.encoder = encoder
        self.data = data
        self.windows = windows

    def run(self, grid):
        """Does what is not done yet; returns dictionary: name of each run -> its metrics."""
        content = {name: found.digest() for name, found in self.data.items()}
        identity = {**self.settings.identity(), "preset": self.encoder.digest, **content}
        seeds = {f"seed-{seed}": seed for seed in range(self.settings.seeds)}
        cells = [Cell(name, {**identity, "seed": seed}) for name, seed in seeds.items()]
        return grid.run(
            cells, lambda cell, folder: self._do(seeds[cell.name], folder), may_diverge=True
        )

    def _do(self, seed, folder):
        """Trains, predicts and scores; writes the answers into `folder` and returns metrics."""
        start = time.monotonic()
        notes, rows, windows = [], self._rows("train", seed), self.windows["dev"]
        with _progress(self.settings.epochs * rows.num_batches, rows) as progress:
            model = self.tuner.fit(
                lambda: self._model(notes),
                rows,
                Recipe.of(self.settings, seed=seed),
                folder,
                loss=_loss(),
                progress=lambda step, steps, loss: progress.update(step, loss),
            )
        fitted, rows = time.monotonic(), self._rows("dev")
        with _progress(rows.num_evaluation_batches, rows) as progress:
            logits = spread(windows, self.tuner.predict(model, _shown(rows, progress)))
        best = squad_n_best(
            windows,
            *logits,
            n=self.settings.n_best,
            max_answer_length=self.settings.max_answer_length,
        )
        predictions = {name: answers[0][0] for name, answers in best.items()}
        write_json(folder / PREDICTIONS, predictions)
        write_json(folder / N_BEST, {name: _entries(found) for name, found in best.items()})
        if self.settings.save_presets:
            self._save(model, folder / PRESET)
        scores = squad_scores(windows.questions, predictions)
        return {
            "exact_match": scores.exact_match,
            "f1": scores.f1,
            "extension": notes[0],
            "train_seconds": fitted - start,
            "seconds": time.monotonic() - start,
        }

    def _model(self, notes):
        backbone = self.encoder.classifier(num_classes=1).backbone
        model, note = span_extractor(backbone, self.settings.length, self.settings.extend)
        notes.append(note)
        return model

    def _rows(self, name, seed=0):
        return rows_of(
            self.windows[name],
            labelled=name == "train",
            pad_id=self.encoder.tokenizer.pad_token_id,
            batch_size=self.settings.batch_size,
            seed=seed,
            segments=self.encoder.has_segments,
        )

    def _save(self, model, folder):
        model.compile()  # else the optimizer's state would go into the preset
        model.preprocessor = TupeTextClassifierPreprocessor(
            self.encoder.tokenizer,
            sequence_length=self.settings.length,
            truncate="waterfall",
            segments=self.encoder.has_segments,
        )
        model.save_to_preset(str(folder))


def read_predictions(folder):
    """Returns the answers of a run: dictionary of a question's id -> text.

    Raises:
        ValueError: if its file is not that.
    """
    path = folder / PREDICTIONS
    try:
        answers = read_json_object(path)
        if not all(isinstance(text, str) for text in answers.values()):
            raise ValueError("every answer must be a text")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"The answers of a run must be those that it wrote: {error}. Move its folder away. "
            f"Received: {str(path)!r}"
        ) from None
    return answers


def _loss():
    """The model's own, which the mean over start and end of `(batch, 2)` labels is."""
    return keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction="mean_with_sample_weight"
    )


def _progress(steps, rows):
    tokens = int(rows.lengths.sum()) / rows.num_batches
    return Progress(steps, tokens_per_step=tokens)


def _shown(rows, progress):
    """The same rows, which move a bar when they are asked for."""
    rows = copy.copy(rows)
    batch = rows.evaluation_batch

    def evaluation_batch(step):
        progress.update(step + 1)
        return batch(step)

    rows.evaluation_batch = evaluation_batch
    return rows


def _entries(answers):
    return [{"text": text, "probability": round(chance, 6)} for text, chance in answers]
