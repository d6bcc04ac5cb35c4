"""The runs of a grid: a task, a learning rate, a seed."""

import shutil
import sys
import time

import numpy as np

from keras_tupe.data import GLUE_TASKS
from keras_tupe.data.rows.padded import Padded
from training.command.grid import DIVERGED, Cell
from training.finetune.engine import FineTuner, Recipe
from training.finetune.glue import results as tables
from training.finetune.glue.protocol import COLUMNS, columns_of
from training.finetune.glue.rows import (
    constant_scores,
    predictions,
    read_tasks,
    scores,
    shuffled_labels,
    targets,
    tokenize,
    write_submission,
)
from training.finetune.task import Task
from training.presets.load import Encoder

SUBMISSION = "submission"


class Glue(Task):
    """GLUE by a paper's protocol."""

    picture = "grid.png"

    def __init__(self, settings):
        super().__init__(settings)
        self.plan = plan = settings.plan()
        self.rows = read_tasks(settings, plan.tasks)
        for line in [line for found in self.rows.values() for line in found.skipped]:
            print(f"finetune glue: left out: {line}", file=sys.stderr)
        self.tuner = FineTuner.of(settings)
        self.encoder = Encoder(
            settings.preset, settings.dropout, settings.position_file, settings.keep_zeros
        )
        self.position = self.encoder.position
        self.length = settings.length or min(plan.length, self.encoder.limit or plan.length)
        self._digests = {name: found.digest() for name, found in self.rows.items()}
        self._tokens = {}  # of one task

    def cells(self):
        return [
            self._cell(task, rate, seed)
            for task in self.plan.tasks
            for rate in self.plan.learning_rates
            for seed in range(self.plan.seeds)
        ]

    def _cell(self, task, rate, seed, tested=()):
        """Returns the `Cell` of a run.

        Args:
            task, rate, seed: what it is of.
            tested: names of the columns whose test sets are predicted; it is beside the grid then.
        """
        rows = self.rows[task]
        epochs = self.plan.epochs[task]
        settings = {
            **self.settings.identity(),
            **{name: getattr(self.plan, name) for name in ("batch_size", "warmup")},
            "task": task,
            "learning_rate": rate,
            "seed": seed,
            "tested": list(tested),
            **{f"test rows of {name}": rows.test_digest(name) for name in tested},
            "epochs": epochs,
            "length": self.length,
            "preset": self.encoder.digest,
            "rows": self._digests[task],
        }
        name = f"test/{'+'.join(tested)}" if tested else task
        # a run takes as long as its rows, and as a thousand to get going
        work = 1000 + epochs * len(rows.train.indices)
        return Cell(f"{name}/lr-{rate}/seed-{seed}", settings, work)

    def do(self, cell, folder):
        start = time.monotonic()
        job = cell.settings
        task, rows = GLUE_TASKS[job["task"]], self.rows[job["task"]]
        names = ("learning_rate", "epochs", "batch_size", "seed")
        known = {name: job[name] for name in names}
        recipe = Recipe.of(self.settings, **known, warmup_share=job["warmup"])
        labels = rows.train.labels
        if self.settings.random_labels:
            labels = shuffled_labels(labels, job["seed"])
        train = self._batches(job, "train", rows.train, targets(task, labels))
        model = self.tuner.fit(
            lambda: self.encoder.classifier(task.num_classes), train, recipe, folder
        )
        metrics = {"columns": {}, "cut_rows": {"train": self._tokens["train"].num_cut}}
        for column in columns_of(job["task"]):
            metrics["columns"][column.name] = self._score(job, model, column, folder)
            metrics["cut_rows"][column.name] = self._tokens[column.split].num_cut
        for name in job["tested"]:
            column, tested = COLUMNS[name], rows.test[name]
            found = predictions(task, self._outputs(job, model, column.test_split, tested))
            write_submission(folder / f"{column.title}.tsv", task, tested.indices, found)
        return {**metrics, "seconds": time.monotonic() - start}

    def _score(self, job, model, column, folder):
        """Scores a dev set, name -> percent, and writes what was predicted, with the outputs."""
        task, rows = GLUE_TASKS[job["task"]], self.rows[job["task"]].labeled[column.name]
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
        return np.stack(self.tuner.predict(model, self._batches(job, split, rows)))

    def _batches(self, job, split, rows, labels=None):
        """Returns `Padded` batches of a split; tokens are kept for the next run of the task."""
        if self._tokens.get("task") != job["task"]:
            self._tokens = {"task": job["task"]}
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
            seed=job["seed"],
        )

    def describe(self, metrics):
        return ", ".join(
            f"{COLUMNS[name].title} {found[self.plan.metrics[COLUMNS[name].task]]:.2f}"
            for name, found in metrics["columns"].items()
        )

    def results(self, out, done):
        plan, tasks = self.plan, {}
        for task in plan.tasks:
            rows, metric = self.rows[task], plan.metrics[task]
            runs = {
                rate: [done[self._cell(task, rate, seed).name] for seed in range(plan.seeds)]
                for rate in plan.learning_rates
            }
            known = [x for some in runs.values() for x in some if DIVERGED not in x]
            tasks[task] = {
                "metric": metric,
                "train_rows": len(rows.train.indices),
                "all_train_rows": rows.all_rows,
                "dev_rows": {name: len(split.indices) for name, split in rows.labeled.items()},
                "cut_rows": known[-1]["cut_rows"] if known else {},
                "bad_lines": len(rows.skipped),
                "columns": {},
            }
            for column in columns_of(task):
                rates = {
                    rate: [
                        None if DIVERGED in one else one["columns"][column.name][metric]
                        for one in some
                    ]
                    for rate, some in runs.items()
                }
                labels = rows.labeled[column.name].labels
                constant = constant_scores(GLUE_TASKS[task], rows.train.labels, labels)[metric]
                tasks[task]["columns"][column.name] = tables.column(rates, constant)
        return {
            "protocol": self.settings.protocol,
            "changes": tables.changes(plan, self.settings, self.length),
            "seeds": list(range(plan.seeds)),
            "length": self.length,
            "random_labels": self.settings.random_labels,
            "tasks": tasks,
            **tables.average(tasks),
        }

    def report(self, results):
        return tables.report(results)

    def draw(self, path, results):
        tables.draw(path, results)

    def finish(self, runs, results):
        """Trains the median runs of the best rates again, to predict the test sets."""
        if not self.settings.submission:
            return []
        chosen = tables.chosen_runs(results["tasks"])
        cells = [self._cell(*key, tested) for key, tested in chosen.items()]
        again = runs.run(cells, self.do, self.describe)
        (runs.out / SUBMISSION).mkdir(exist_ok=True)
        names, notes = [], []
        for cell, key in zip(cells, chosen, strict=True):
            metrics, before = again[cell.name], runs.metrics(self._cell(*key))
            results["seconds"] += metrics["seconds"]
            for column in cell.settings["tested"]:
                names.append(f"{COLUMNS[column].title}.tsv")
                partial = runs.out / SUBMISSION / f".partial.{names[-1]}"
                shutil.copyfile(runs.out / cell.name / names[-1], partial)
                partial.replace(runs.out / SUBMISSION / names[-1])
            if metrics["columns"] != before["columns"]:
                notes.append(
                    f"{cell.name}: trained again it scores otherwise: {metrics['columns']}."
                )
        told = (
            f"For GLUE's server: {', '.join(names)}, in {SUBMISSION}/. It takes them in one zip "
            "file with WNLI.tsv and AX.tsv, which are not made here."
        )
        return [told, *notes]
