"""One run of the grid: a task, a learning rate, a seed."""

import dataclasses
import time

import numpy as np

from keras_tupe.data.rows.padded import Padded
from keras_tupe.data.tasks.glue import TASKS as GLUE_TASKS
from keras_tupe.trainer import NonFiniteError
from training.command.grid import Cell
from training.finetune.engine import Recipe
from training.finetune_glue.data import shuffled_labels, tokenize
from training.finetune_glue.protocol import COLUMNS, columns_of
from training.finetune_glue.scores import predictions, scores, targets
from training.finetune_glue.submission import write_submission


@dataclasses.dataclass(frozen=True)
class Job:
    """A cell of the grid.

    Attributes:
        task: name of the task.
        learning_rate: the peak.
        seed: of the last layer, the order of the rows and dropout.
        tested: names of the columns whose test sets are predicted; then it is a run of its own,
            beside the grid.
    """

    task: str
    learning_rate: float
    seed: int
    tested: tuple = ()

    @property
    def folder(self):
        """Folder of the run, in that of the grid."""
        run = f"lr-{self.learning_rate}/seed-{self.seed}"
        return f"test/{'+'.join(self.tested)}/{run}" if self.tested else f"{self.task}/{run}"


class Runs:
    """Does the runs of a grid.

    Args:
        settings: a `Settings` of `training.finetune_glue`.
        plan: its `Plan`.
        tuner: a `FineTuner`.
        encoder: an `Encoder`.
        rows: name of each task -> `TaskRows`.
        length: most tokens of a row.
    """

    def __init__(self, settings, plan, tuner, encoder, rows, length):
        self.settings = settings
        self.plan = plan
        self.tuner = tuner
        self.encoder = encoder
        self.rows = rows
        self.length = length
        self._digests = {name: found.digest() for name, found in rows.items()}
        self._tokens = {}  # of one task

    def run(self, grid, jobs):
        """Does what is not done yet; returns the metrics of each job, in order."""
        jobs_of = {job.folder: job for job in jobs}
        cells = [Cell(job.folder, self._identity(job), self._work(job)) for job in jobs]

        def describe(metrics):
            found = [
                f"{COLUMNS[name].title} "
                + ("failed" if scores is None else f"{scores[metric]:.2f}")
                for name, scores in metrics["columns"].items()
                for metric in [self.plan.metrics[COLUMNS[name].task]]
            ]
            return ", ".join(found)

        found = grid.run(cells, lambda cell, folder: self._do(jobs_of[cell.name], folder), describe)
        return [found[job.folder] for job in jobs]

    def _identity(self, job):
        """What the numbers of a run depend on, but for rounding: JSON values."""
        settings = self.settings
        return {
            **{name: value for name, value in dataclasses.asdict(job).items() if value != ()},
            **({"tested": list(job.tested)} if job.tested else {}),
            **{
                f"test rows of {name}": self.rows[job.task].test_digest(name) for name in job.tested
            },
            **({"keep_zeros": True} if settings.keep_zeros else {}),
            "epochs": self.plan.epochs[job.task],
            "batch_size": self.plan.batch_size,
            "warmup_share": self.plan.warmup_share,
            "weight_decay": settings.weight_decay,
            "clip_norm": settings.clip_norm,
            "dropout": settings.dropout,
            "length": self.length,
            "precision": settings.precision,
            "micro_batches": settings.micro_batches,
            "random_labels": settings.random_labels,
            "preset": self.encoder.digest,
            "rows": self._digests[job.task],
        }

    def _work(self, job):
        """How long a run takes: rows that it trains on, and a thousand's time to get going."""
        return 1000 + self.plan.epochs[job.task] * len(self.rows[job.task].train.indices)

    def _do(self, job, folder):
        """Trains, predicts and scores; writes predictions into `folder` and returns metrics."""
        start = time.monotonic()
        task, rows = GLUE_TASKS[job.task], self.rows[job.task]
        recipe = Recipe.of(
            self.settings,
            learning_rate=job.learning_rate,
            epochs=self.plan.epochs[job.task],
            batch_size=self.plan.batch_size,
            warmup_share=self.plan.warmup_share,
            seed=job.seed,
        )
        labels = rows.train.labels
        if self.settings.random_labels:
            labels = shuffled_labels(labels, job.seed)
        train = self._batches(job.task, "train", rows.train, targets(task, labels), job.seed)
        metrics = {"columns": {}, "cut_rows": {"train": self._tokens["train"].num_cut}}
        try:
            model = self.tuner.fit(
                lambda: self.encoder.classifier(task.num_classes),
                train,
                recipe,
                folder,
            )
        except NonFiniteError as error:
            names = [column.name for column in columns_of(job.task)]
            metrics["columns"] = dict.fromkeys(names)
            metrics["not_finite_at_step"] = error.step
        else:
            for column in columns_of(job.task):
                metrics["columns"][column.name] = self._score(job, model, column, folder)
                metrics["cut_rows"][column.name] = self._tokens[column.split].num_cut
            for name in job.tested:
                column, tested = COLUMNS[name], rows.test[name]
                found = predictions(task, self._outputs(job, model, column.test_split, tested))
                write_submission(folder / f"{column.title}.tsv", task, tested.indices, found)
        return {**metrics, "seconds": time.monotonic() - start}

    def _score(self, job, model, column, folder):
        """Scores a dev set, name -> percent, and writes what was predicted, with the outputs."""
        task, rows = GLUE_TASKS[job.task], self.rows[job.task].labeled[column.name]
        outputs = self._outputs(job, model, column.split, rows)
        found = predictions(task, outputs)
        with (folder / f"{column.title}.dev.tsv").open("w", encoding="utf-8") as file:
            file.write("index\tlabel\tprediction\toutputs\n")
            for index, label, value, row in zip(
                rows.indices, rows.labels, found, outputs, strict=True
            ):
                numbers = " ".join(map(str, row))  # the shortest that are the same float32
                file.write(f"{index}\t{label}\t{value}\t{numbers}\n")
        return scores(task, rows.labels, found)

    def _outputs(self, job, model, split, rows):
        """Returns the model's outputs `(rows, classes)`."""
        return np.stack(self.tuner.predict(model, self._batches(job.task, split, rows)))

    def _batches(self, task, split, rows, labels=None, seed=0):
        """Returns `Padded` batches of a split; tokens are kept for the next run of the task."""
        if self._tokens.get("task") != task:
            self._tokens = {"task": task}
        if split not in self._tokens:
            self._tokens[split] = tokenize(
                self.encoder.tokenizer, rows.texts, self.length, self.encoder.has_segments
            )
        tokens = self._tokens[split]
        return Padded(
            {"token_ids": tokens.token_ids, "segment_ids": tokens.segment_ids},
            labels,
            pad_id=self.encoder.tokenizer.pad_token_id,
            batch_size=self.plan.batch_size,
            seed=seed,
        )
