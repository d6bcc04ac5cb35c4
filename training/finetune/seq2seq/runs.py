"""The runs of `keras-tupe finetune seq2seq`: one for each seed, which goes on after a kill."""

import contextlib
import pathlib
import shutil
import signal
import time
import typing

from keras_tupe import objectives
from keras_tupe.data import Padded
from keras_tupe.models import SmoothedCrossentropy
from keras_tupe.trainer import Checkpoints, InverseSquareRoot
from training.command.grid import told
from training.command.log import LOG, VALID, RunLog, read_log
from training.command.report import replaced_text
from training.finetune.engine import FineTuner, linear, warmup_steps
from training.finetune.report import table_of_seeds
from training.finetune.seq2seq.pairs import read_pairs, tokens_of
from training.finetune.seq2seq.start import Start
from training.finetune.seq2seq.writer import MEASURES, Writer, score
from training.finetune.task import Task, converged, saved, told_together
from training.machine.devices import rows_per_part
from training.machine.settings import XLA
from training.pretrain.loop import Saver, StopSignal, Training, train
from training.pretrain.progress import Progress
from training.pretrain.report import Run, draw_runs

FILES = ("train", "valid", "test")
PRESET, UNFINISHED = "preset", "unfinished"
PREDICTIONS = {"valid": "predictions.tsv", "test": "predictions-test.tsv"}
_KEPT = 2  # checkpoints of a run under way
_EPOCHS = 10


class Plan(typing.NamedTuple):
    """How long is trained, and after how many steps something is written."""

    steps: int
    warmup_steps: int
    schedule: object  # learning rate, a function of the step
    valid_every: int
    save_every: int
    log_every: int

    def saved_step_numbers(self):
        """Returns the steps after which there is a checkpoint, however often there is one: none."""
        return ()


def plan_of(settings, batches):
    """Returns the `Plan` of a run whose epochs have so many batches."""
    steps = settings.steps or (settings.epochs or _EPOCHS) * batches
    warmup = warmup_steps(settings.warmup, steps)
    if settings.schedule == "inverse_sqrt":
        warmup = max(warmup, 1)
        schedule = InverseSquareRoot(settings.learning_rate, warmup)
    else:
        schedule = linear(settings.learning_rate, steps, settings.warmup)
    valid_every = settings.valid_every or max(steps // 20, 1)
    log_every = settings.log_every or max(steps // 100, 1)
    return Plan(steps, warmup, schedule, valid_every, settings.save_every, log_every)


class Seq2Seq(Task):
    """Pairs of texts, by an encoder and a decoder."""

    picture = "curves.png"

    def __init__(self, settings):
        super().__init__(settings)
        names = [name for name in FILES if getattr(settings, name) is not None]
        self.pairs = told_together(lambda name: read_pairs(getattr(settings, name)), names)
        self.pairs["train"] = self.pairs["train"].part(settings.limit)
        self.machine = FineTuner.of(settings).machine
        rows_per_part(settings.batch_size, self.machine, settings.micro_batches)
        self.start = Start(settings, self.pairs["train"])
        self.position, text = self.start.position, self.start.preprocessor
        self.tokens = told_together(
            lambda name: tokens_of(self.pairs[name], text, settings.cut_long), names
        )
        self.plan = plan_of(settings, self._rows("train").num_batches)

    def content(self):
        digests = {name: pairs.digest() for name, pairs in self.pairs.items()}
        return {**super().content(), **digests}

    def do(self, cell, folder):
        out = pathlib.Path(self.settings.out)
        _tidy(out)
        unfinished = out / UNFINISHED / cell.name  # of its log and checkpoints until it is trained
        model = self._trained(cell.settings["seed"], unfinished)
        start = time.monotonic()
        for name in (LOG, VALID):
            shutil.copy(unfinished / name, folder / name)
        metrics = {
            "parameters": model.count_params(),
            "train_seconds": read_log(folder / LOG)["seconds"][-1],
        }
        writer = Writer(model, self.start.preprocessor, self.settings)
        for name in self._scored():
            metrics[name] = self._scores(writer, name, folder)
        saved(model, self.start.preprocessor, folder / PRESET)
        # what a stopped run had taken before is in the seconds of its log
        return {**metrics, "seconds": metrics["train_seconds"] + time.monotonic() - start}

    def _trained(self, seed, folder):
        """Returns the trained model of a seed; goes on from its last checkpoint."""
        settings, plan = self.settings, self.plan
        rows, held_out = self._rows("train", seed), self._rows("valid")
        with self.machine.scope():
            model = self.start.model(seed)
            # the model's own loss, without smoothing, needs less memory
            smoothing = settings.label_smoothing
            model.compile(loss=SmoothedCrossentropy(smoothing) if smoothing else "auto")
            names = ("weight_decay", "beta_1", "beta_2", "clip_norm")
            training = Training(
                model,
                self.machine,
                rows,
                held_out,
                plan.schedule,
                {name: getattr(settings, name) for name in names},
                objective=objectives.get("causal_lm"),
                micro_batches=settings.micro_batches,
                remat=settings.remat,
                xla=XLA[settings.xla],
            )
        data = {name: self.pairs[name].digest() for name in ("train", "valid")}
        identity = {**settings.training_identity(), "seed": seed, "preset": self.start.digest}
        saver = Saver(Checkpoints(folder / "checkpoints", _KEPT), identity, data, None, writes=True)
        step = saver.restore(training.trainer)
        tokens = int(rows.lengths.sum()) / rows.num_batches
        log = RunLog(folder, step, tensorboard=False)
        with (
            StopSignal() as stop,
            Progress(plan.steps, step, tokens_per_step=tokens) as progress,
            log,
        ):
            if step:
                progress.say(f"seed {seed} goes on from step {step:,}.")
            done, _ = train(training, plan, stop, saver, progress, log, step)
            if not done:
                ended = KeyboardInterrupt()
                ended.signal = signal.SIGTERM
                raise ended
        return model

    def _scored(self):
        return [name for name in PREDICTIONS if name in self.pairs]

    def _scores(self, writer, name, folder):
        """Writes down what a `Writer` makes of the sources of a file; returns the scores."""
        pairs, sources = self.pairs[name], self.tokens[name].sources
        tokens = sum(map(len, sources)) / len(sources)
        with Progress(len(sources), tokens_per_step=tokens) as progress:
            written = writer.texts(sources, progress.update)
        lines = zip(pairs.sources, pairs.targets, written, strict=True)
        text = "".join("\t".join(line) + "\n" for line in lines)
        replaced_text(folder / PREDICTIONS[name], text)
        return score(pairs.targets, written, self.start.preprocessor.tokenizer.lowercase)

    def _rows(self, name, seed=0):
        return Padded.of_pairs(
            self.tokens[name].sources,
            self.tokens[name].targets,
            pad_id=self.start.preprocessor.tokenizer.pad_token_id,
            batch_size=self.settings.batch_size,
            seed=seed,
        )

    def describe(self, metrics):
        return ", ".join(f"{text} {metrics['valid'][name]:.2f}" for name, text in MEASURES.items())

    def results(self, out, done):
        _tidy(out)
        done, told_of = converged(done, self.settings)
        metrics = list(done.values())
        return {
            "vocabulary_size": self.start.preprocessor.tokenizer.vocabulary_size(),
            "parameters": metrics[0]["parameters"],
            "settings": self.settings.identity(),
            "steps": self.plan.steps,
            "warmup_steps": self.plan.warmup_steps,
            **told_of,
            "train_seconds": [found["train_seconds"] for found in metrics],
            "pairs": {
                name: {"used": len(pairs), "cut": self.tokens[name].num_cut}
                for name, pairs in self.pairs.items()
            },
            **{name: means([found[name] for found in metrics]) for name in self._scored()},
        }

    def report(self, results):
        files = self._scored()
        columns = {
            f"{name} {text}": results[name][measure]["values"]
            for name in files
            for measure, text in MEASURES.items()
        }
        lines = [
            f"Targets written by {results['position']} "
            f"({results['parameters']:,} parameters, {results['steps']:,} steps), in percent",
            table_of_seeds(results["seeds"], columns),
        ]
        for name in files:
            low, high = results[name]["exact_match_intervals"][0]
            lines.append(
                f"{results['pairs'][name]['used']:,} {name} pairs; exact match of seed "
                f"{results['seeds'][0]} at 95 % over the pairs: {low:.1f} to {high:.1f}."
            )
        train = results["pairs"]["train"]
        lines.append(f"Trained on {train['used']:,} pairs.{_cut(results['pairs'])}")
        signatures = results[files[0]]["signatures"]
        lines.append(f"sacrebleu: chrF `{signatures['chrf']}`, BLEU `{signatures['bleu']}`.")
        return lines + told(results["diverged"])

    def draw(self, path, results):
        folders = {
            seed: pathlib.Path(self.settings.out) / f"seed-{seed}" for seed in results["seeds"]
        }
        runs = [
            Run(f"seed {seed}", read_log(folder / LOG), read_log(folder / VALID), "causal_lm")
            for seed, folder in folders.items()
        ]
        draw_runs(path, runs)


def means(scores):
    """Returns the scores of all seeds, of a list of what `score` returned, and their means."""
    values = {name: [found[name] for found in scores] for name in MEASURES}
    return {
        "pairs": scores[0]["pairs"],
        **{name: {"values": x, "mean": sum(x) / len(x)} for name, x in values.items()},
        "exact_match_intervals": [found["exact_match_interval"] for found in scores],
        "signatures": scores[0]["signatures"],
    }


def _cut(pairs):
    parts = [
        f"{number:,} {side}s of --{name}"
        for name, found in pairs.items()
        for side, number in found["cut"].items()
        if number
    ]
    return f" Cut, since longer than their rows: {', '.join(parts)}." if parts else ""


def _tidy(out):
    """Removes checkpoints of runs that are complete; those of others stay."""
    for folder in (out / UNFINISHED).glob("*"):
        if (out / folder.name).exists():
            shutil.rmtree(folder)
    with contextlib.suppress(OSError):  # there are others, or there was none
        (out / UNFINISHED).rmdir()
