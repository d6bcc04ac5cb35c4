"""The runs of `keras-tupe finetune squad`: one for each seed, on windows of the passages."""

import dataclasses
import sys
import time

import keras
import numpy as np

from keras_tupe import TupeTextClassifierPreprocessor
from keras_tupe._json_file import read_json_object
from keras_tupe.data import read_squad, squad_n_best, squad_windows, write_json
from keras_tupe.data.rows.padded import Padded
from keras_tupe.metrics import squad_scores
from training.command.grid import told
from training.command.report import table
from training.finetune.engine import FineTuner, Recipe
from training.finetune.report import Panel, Series, draw_panels, table_of_seeds
from training.finetune.squad.answers import group_name, random_spans, score
from training.finetune.task import Task, converged, digest_of, part_of, saved, told_together
from training.presets.load import Encoder, span_extractor
from training.pretrain.progress import Progress

PREDICTIONS, N_BEST, PRESET = "predictions.json", "nbest.json", "preset"
OFFICIAL = {"train": 87_599, "dev": 10_570}  # questions of SQuAD v1.1
_MEASURES = {"exact_match": "EM", "f1": "F1"}
_GROUPS = {
    "by_answer_position": ("position of the answer", "in the passage (first token)"),
    "by_passage_length": ("length of the passage", "(tokens)"),
}
_SOURCE = (
    "the defaults (rows of 512 tokens: Huang et al. 2020; rate, epochs, batch: what they have for "
    "GLUE; the rest: BERT's)"
)
# What counts besides the length, whose larger values are Huang et al.'s own subject.
_PROTOCOL = (
    *("doc_stride", "max_question_length", "learning_rate", "epochs", "batch_size", "warmup"),
    *("weight_decay", "clip_norm", "dropout", "max_answer_length"),
)


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions of a file."""

    questions: list
    total: int  # good ones in the file
    skipped: list  # a sentence for each bad one that was left out

    def digest(self):
        """Returns a hash of all that counts, hexadecimal."""
        return digest_of((x.id, x.context, x.question, x.answers) for x in self.questions)


def read_questions(settings):
    """Returns the `Questions` of both files, by the names `"train"` and `"dev"`."""
    limits = {"train": settings.limit, "dev": settings.dev_limit}

    def read(name):
        skipped = []
        given = skipped if settings.skip_bad else None
        questions = read_squad(getattr(settings, name), skipped=given)
        chosen = part_of(len(questions), limits[name])
        return Questions([questions[number] for number in chosen], len(questions), skipped)

    return told_together(read, limits)


class Squad(Task):
    """SQuAD v1.1, by windows and spans."""

    picture = "squad.png"

    def __init__(self, settings):
        super().__init__(settings)
        self.data = read_questions(settings)
        for line in [line for found in self.data.values() for line in found.skipped]:
            print(f"finetune squad: left out: {line}", file=sys.stderr)
        self.tuner = FineTuner.of(settings)
        self.encoder = Encoder(settings.preset, settings.dropout, settings.position_file)
        self.position = self.encoder.position
        self.windows = {
            name: squad_windows(
                found.questions,
                self.encoder.tokenizer.op,
                settings.length,
                doc_stride=settings.doc_stride,
                max_question_length=settings.max_question_length,
            )
            for name, found in self.data.items()
        }

    def content(self):
        digests = {name: found.digest() for name, found in self.data.items()}
        return {**super().content(), **digests}

    def do(self, cell, folder):
        start, seed = time.monotonic(), cell.settings["seed"]
        notes, rows, windows = [], self._rows("train", seed), self.windows["dev"]
        with _progress(self.settings.epochs * rows.num_batches, rows) as progress:
            model = self.tuner.fit(
                lambda: self._model(notes),
                rows,
                Recipe.of(self.settings, seed=seed, warmup_share=self.settings.warmup),
                folder,
                # the model's own, which the mean over start and end of `(batch, 2)` labels is
                loss=keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction="mean_with_sample_weight"
                ),
                progress=progress.update,
            )
        fitted, rows = time.monotonic(), self._rows("dev")
        with _progress(rows.num_evaluation_batches, rows) as progress:
            logits = spread(windows, self.tuner.predict(model, rows, progress.update))
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
            preprocessor = TupeTextClassifierPreprocessor(
                self.encoder.tokenizer,
                sequence_length=self.settings.length,
                truncate="waterfall",
                segments=self.encoder.has_segments,
            )
            saved(model, preprocessor, folder / PRESET)
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

    def describe(self, metrics):
        return ", ".join(f"{text} {metrics[name]:.2f}" for name, text in _MEASURES.items())

    def results(self, out, done):
        settings, windows = self.settings, self.windows["dev"]
        done, told_of = converged(done, settings)
        answers = [read_predictions(out / name) for name in done]
        counts = {name: len(found.questions) for name, found in self.data.items()}
        return {
            "length": settings.length,
            "settings": settings.identity(),
            "changes": changes(settings, counts),
            "extension": next(iter(done.values()))["extension"],
            **told_of,
            "questions": {name: self._counts(name) for name in self.data},
            **score(windows, answers),
            "random_spans": random_spans(windows, settings.max_answer_length),
        }

    def _counts(self, name):
        data, windows = self.data[name], self.windows[name]
        return {
            "used": len(data.questions),
            "in_file": data.total,
            "left_out": len(data.skipped),
            "windows": len(windows.token_ids),
            "no_window": len(windows.unlabelled_ids),
            "inside_a_token": len(windows.inexact_ids),
        }

    def report(self, results):
        columns = {text: results[name]["values"] for name, text in _MEASURES.items()}
        random = [results["random_spans"][name] for name in _MEASURES]
        limits = [f"{text} {_interval(results[name])}" for name, text in _MEASURES.items()]
        lines = [
            f"Answers of {results['position']}, rows of {results['length']} tokens, by the rules "
            "of SQuAD v1.1",
            table_of_seeds(results["seeds"], columns, random_spans=random),
            f"95 % over the questions: {', '.join(limits)}. {_told_counts(results)}",
        ]
        lines += [results["extension"]] if results["extension"] else []
        if results["changes"]:
            lines.append(f"Not as in {_SOURCE}: {'; '.join(results['changes'])}.")
        for key, (name, _) in _GROUPS.items():
            header = [f"{name} (tokens)", "questions", "EM", "95 %", "F1", "95 %"]
            rows = [
                [group_name(group), f"{group['questions']:,}", *_cells(group)]
                for group in results[key]
            ]
            lines.append(table(header, rows))
        return lines + told(results["diverged"])

    def draw(self, path, results):
        """Draws F1 and exact match of groups of questions, with intervals."""
        count = len(results["seeds"])
        runs = "" if count == 1 else f", mean of {count} seeds"
        title = f"Answers of {results['position']}{runs}; 95 % intervals over questions"
        panels = [_panel(results, key, *words) for key, words in _GROUPS.items()]
        draw_panels(path, panels, title, size=(6, 4.6))


def changes(settings, counts):
    """Returns a sentence for each thing that is not as by default, longer rows left out.

    Of `"train"` and `"dev"`, `counts` has the number of questions.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    found = [
        f"{name.replace('_', ' ')} {getattr(settings, name)}, not {defaults[name]}"
        for name in _PROTOCOL
        if getattr(settings, name) != defaults[name]
    ]
    if settings.length < defaults["length"]:
        found.append(f"rows of {settings.length} tokens, not {defaults['length']}")
    for name, verb in (("train", "trained on"), ("dev", "scored on")):
        if counts[name] != OFFICIAL[name]:
            found.append(f"{verb} {counts[name]:,} questions, not the official {OFFICIAL[name]:,}")
    return found


def read_predictions(folder):
    """Returns the answers of a run, id of a question -> text, or refuses its file."""
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


def rows_of(windows, *, labelled, pad_id, batch_size, seed=0, segments=False):
    """Returns a `SquadWindows` as `Padded` batches, without its padding.

    Where they are `labelled`, the positions of the answers go with them, `(windows, 2)`.
    """
    sizes = windows.padding_mask.sum(axis=1)
    labels = np.stack([windows.start_positions, windows.end_positions], axis=1)
    names = ["token_ids", *(["segment_ids"] if segments else [])]
    inputs = {
        name: [row[:size] for row, size in zip(getattr(windows, name), sizes, strict=True)]
        for name in names
    }
    return Padded(
        inputs, labels if labelled else None, pad_id=pad_id, batch_size=batch_size, seed=seed
    )


def spread(windows, outputs):
    """Returns start and end logits `(windows, length)` of arrays `(2, tokens of the row)`."""
    logits = np.zeros((2, *windows.token_ids.shape), "float32")
    for number, row in enumerate(outputs):
        logits[:, number, : row.shape[1]] = row
    return logits[0], logits[1]


def _progress(steps, rows):
    tokens = int(rows.lengths.sum()) / rows.num_batches
    return Progress(steps, tokens_per_step=tokens)


def _entries(answers):
    return [{"text": text, "probability": round(chance, 6)} for text, chance in answers]


def _told_counts(results):
    parts = [
        f"{found['used']:,} {what} questions in {found['windows']:,} windows (for "
        f"{found['no_window']:,} no window holds the whole answer)"
        for what, found in zip(("training", "dev"), results["questions"].values(), strict=True)
    ]
    return "; ".join(parts) + "."


def _cells(group):
    return [
        cell for key in _MEASURES for cell in (f"{group[key]['mean']:.1f}", _interval(group[key]))
    ]


def _interval(entry):
    return "-" if entry["low"] is None else f"{entry['low']:.1f} to {entry['high']:.1f}"


def _panel(results, key, name, more):
    series, lines = [], []
    for number, (measure, text) in enumerate(_MEASURES.items()):
        color, whole = f"C{number}", results[measure]["mean"]
        entries = [group[measure] for group in results[key]]
        points = [
            (place + 0.2 * number - 0.1, entry["mean"], entry["low"], entry["high"])
            for place, entry in enumerate(entries)
        ]
        style = {"fmt": "o-", "color": color, "linewidth": 1, "markersize": 4, "capsize": 3}
        series.append(Series(f"{text}: {whole:.1f} in all", points, style))
        lines.append((None, whole, color, ":"))
    chance = results["random_spans"]["f1"]
    return Panel(
        title="",
        x=f"{name} {more}",
        y="percent",
        ticks=[f"{group_name(group)}\nn={group['questions']:,}" for group in results[key]],
        series=series,
        lines=[*lines, (f"F1 of random spans: {chance:.1f}", chance, "gray", "--")],
        ends=(0, None),
    )
