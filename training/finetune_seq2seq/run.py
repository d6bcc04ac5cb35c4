"""The runs of `training.finetune_seq2seq`: one for each seed."""

import contextlib
import shutil
import signal
import time

from keras_tupe import objectives
from keras_tupe.data import Padded
from keras_tupe.models import SmoothedCrossentropy
from keras_tupe.trainer import Checkpoints
from training.command.grid import Cell
from training.command.log import LOG, VALID, RunLog, read_log
from training.command.report_files import replaced_text
from training.finetune_seq2seq.plan import plan_of
from training.finetune_seq2seq.scores import MEASURES, score
from training.finetune_seq2seq.writer import Writer
from training.machine.settings import XLA
from training.pretrain.loop import StopSignal, Training, Watch
from training.pretrain.progress import Progress
from training.pretrain.saver import Saver

PRESET, UNFINISHED = "preset", "unfinished"
PREDICTIONS = {"valid": "predictions.tsv", "test": "predictions-test.tsv"}
_KEPT = 2  # checkpoints of a run under way


class Runs:
    """Does the runs of a command.

    Args:
        settings: a `Settings` of `training.finetune_seq2seq`.
        machine: the devices.
        start: what models start as, see `start_of`.
        pairs: dictionary: name of each file -> `Pairs`.
        tokens: dictionary: the same names -> `Tokens`.

    Attributes:
        plan: the `Plan`.
    """

    def __init__(self, settings, machine, start, pairs, tokens):
        self.settings, self.machine, self.start = settings, machine, start
        self.pairs, self.tokens = pairs, tokens
        self.plan = plan_of(settings, self._rows("train").num_batches)

    def run(self, grid):
        """Does what is not done yet; returns dictionary: name of each run -> its metrics."""
        content = {name: pairs.digest() for name, pairs in self.pairs.items()}
        identity = {**self.settings.identity(), "preset": self.start.digest, **content}
        seeds = {f"seed-{seed}": seed for seed in range(self.settings.seeds)}
        cells = [Cell(name, {**identity, "seed": seed}) for name, seed in seeds.items()]

        def do(cell, folder):
            _tidy(grid.out)
            return self._do(seeds[cell.name], grid.out / UNFINISHED / cell.name, folder)

        found = grid.run(cells, do, _described, may_diverge=True)
        _tidy(grid.out)
        return found

    def _do(self, seed, unfinished, folder):
        """Trains, writes and scores; all that stays goes into `folder`. Returns metrics.

        Args:
            seed: of the run.
            unfinished: folder of its log and checkpoints until it is trained.
            folder: that of the run.
        """
        model = self._trained(seed, unfinished)
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
        self._save(model, folder / PRESET)
        # what a stopped run had taken before is in the seconds of its log
        return {**metrics, "seconds": metrics["train_seconds"] + time.monotonic() - start}

    def _trained(self, seed, folder):
        """Returns the trained model of a seed; goes on from its last checkpoint."""
        settings, plan = self.settings, self.plan
        rows, held_out = self._rows("train", seed), self._rows("valid")
        with self.machine.scope():
            model = self.start.model(seed)
            model.compile(loss=_loss(settings.label_smoothing))
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
        checkpoints = Checkpoints(folder / "checkpoints", _KEPT)
        saver = Saver(checkpoints, identity, data, None, writes=True)
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
            watch = Watch(training, plan, stop, saver, progress, log, step)
            self._train(training, watch, progress, log, read_log(folder / VALID)["step"], tokens)
        return model

    def _train(self, training, watch, progress, log, validated, tokens):
        """Trains to the last step, with a held-out loss now and then.

        Args:
            training, watch, progress, log: the `Training`, `Watch`, `Progress`, `RunLog`.
            validated: steps whose held-out loss is known.
            tokens: mean number of tokens per step.
        """
        plan = self.plan
        while True:
            step = watch.step
            if plan.is_validated(step) and step not in validated:
                scores = training.evaluate(step, progress)
                log.valid(step=step, tokens=round(step * tokens), **scores)
            if step == plan.steps:
                return
            end = min((step // plan.valid_every + 1) * plan.valid_every, plan.steps)
            watch.begin()
            training.fit(step, end, progress, watch)
            if training.trainer.stop_training:
                stop = KeyboardInterrupt()
                stop.signal = signal.SIGTERM
                raise stop

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
        tokens = self.tokens[name]
        return Padded.of_pairs(
            tokens.sources,
            tokens.targets,
            pad_id=self.start.preprocessor.tokenizer.pad_token_id,
            batch_size=self.settings.batch_size,
            seed=seed,
        )

    def _save(self, model, folder):
        model.compile()  # else the optimizer's state would go into the preset
        model.preprocessor = self.start.preprocessor
        model.save_to_preset(str(folder))


def _loss(label_smoothing):
    """Returns the loss; the model's own, without smoothing, needs less memory."""
    return SmoothedCrossentropy(label_smoothing) if label_smoothing else "auto"


def _described(metrics):
    """Returns a run's scores on the held-out pairs, for a line."""
    return ", ".join(f"{text} {metrics['valid'][name]:.2f}" for name, text in MEASURES.items())


def _tidy(out):
    """Removes checkpoints of runs that are complete; those of others stay."""
    for folder in (out / UNFINISHED).glob("*"):
        if (out / folder.name).exists():
            shutil.rmtree(folder)
    with contextlib.suppress(OSError):  # there are others, or there was none
        (out / UNFINISHED).rmdir()
