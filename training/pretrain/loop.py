"""The loop of a run: train, look, save, and stop when asked."""

import json
import signal

import keras

from keras_tupe.trainer import read_state, write_state

# Settings that checkpoints of earlier versions do not have, with the value that was theirs.
_ADDED = {"layer_norm_epsilon": 1e-5}


class StopSignal:
    """Remembers that the process was asked to end (SIGTERM), while it is in use.

    Attributes:
        received: whether it was.
    """

    def __init__(self):
        self.received = False

    def __enter__(self):
        self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *exception):
        signal.signal(signal.SIGTERM, self._before)

    def _note(self, *_):
        self.received = True


class Saver:
    """Checkpoints of one run, with what they must agree with.

    Args:
        checkpoints: a `Checkpoints`.
        identity: dictionary of the settings that a run keeps, JSON values.
        data: dictionary that tells the rows apart, JSON values.
        allow_change: names of settings that may differ; `"data"` for the rows.
        writes: whether this worker writes; the others only read.

    Attributes:
        losses: those that the restored checkpoint was saved with.
    """

    def __init__(self, checkpoints, identity, data, allow_change, writes):
        self._checkpoints = checkpoints
        self._facts = {"settings": identity, "data": data}
        self._allow_change = set(allow_change)
        self._writes = writes
        self.losses = ()

    def restore(self, trainer):
        """Puts the last checkpoint's state into a trainer; returns its step, 0 without one.

        Raises:
            ValueError: if it is damaged, of other settings, rows or another model.
        """
        step = self._checkpoints.latest()
        if step is None:
            return 0
        self.check(step)
        arrays, record = self._checkpoints.read(step)
        try:
            write_state(trainer, arrays)
        except ValueError as error:
            raise ValueError(f"{error}, in {self._checkpoints.path(step)}") from None
        self.losses = tuple(record.get("losses", ()))
        return step

    def check(self, step):
        """Refuses a checkpoint of other settings or rows, naming all that differs."""
        facts = self._checkpoints.read_facts(step)
        losses = facts.get("losses", [])
        if not isinstance(losses, list) or not all(type(loss) in (int, float) for loss in losses):
            raise ValueError(
                "The losses of a checkpoint must be a list of numbers. Remove its folder to go on "
                f"from the one before. Received: {str(self._checkpoints.path(step))!r}"
            )
        # as JSON would give them back
        ours = json.loads(json.dumps(self._facts))
        before, now = facts.get("settings"), ours["settings"]
        before = before if isinstance(before, dict) else {}
        before = {**{name: _ADDED[name] for name in _ADDED if name in now}, **before}
        names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        changes = {name: f"{name}: {before.get(name)!r} -> {now.get(name)!r}" for name in names}
        if facts.get("data") != ours["data"]:
            changes["data"] = f"data: {facts.get('data')} -> {ours['data']}"
            if facts.get("data") == _without_order(ours["data"]):
                changes["data"] = (
                    "data: the same rows, but the checkpoint is of a version that did not note "
                    "their order. --allow-change data is right for rows that were made without "
                    "--runner, then and now: their order has not changed"
                )
        refused = [text for name, text in changes.items() if name not in self._allow_change]
        if refused:
            raise ValueError(
                "The run in --out was begun with other settings. Give it another --out, or name "
                "in --allow-change what may change on its way. Received: " + "; ".join(refused)
            )

    def save(self, trainer, step, losses):
        """Writes a checkpoint of this step, if this worker writes.

        Args:
            trainer: the `Trainer`.
            step: steps done.
            losses: list of the losses since the last line of the log.

        Raises:
            OSError: if there is no room; earlier checkpoints stay.
        """
        if self._writes and step not in self._checkpoints.steps():
            facts = {**self._facts, "losses": losses}
            self._checkpoints.save(step, read_state(trainer), facts)

    def last_good(self):
        """Returns the path of the last checkpoint, or "none"."""
        step = self._checkpoints.latest()
        return "none" if step is None else str(self._checkpoints.path(step))


def _without_order(facts):
    return {name: value for name, value in facts.items() if not name.endswith("order_hash")}


class Watch(keras.callbacks.Callback):
    """What happens between two calls of the host: log, save, stop.

    Args:
        trainer: the `Trainer`.
        settings: a `Settings` of `training.pretrain`.
        machine: the machine of the run.
        stop: a `StopSignal`.
        saver: a `Saver`.
        progress: a `Progress`.
        log: a `RunLog`, or `None` for workers that write none.
        schedule: function step -> learning rate.
        step: step that the run begins at.

    Attributes:
        step: steps done.
    """

    def __init__(self, trainer, settings, machine, stop, saver, progress, log, schedule, step):
        super().__init__()
        self.step = self._start = step
        self._trainer = trainer  # `self.model` brings JAX's arrays back at each look
        self._settings, self._machine, self._stop = settings, machine, stop
        self._saver, self._progress, self._log = saver, progress, log
        self._schedule = schedule
        self._losses = list(saver.losses)

    def begin(self):
        """Says that a new `fit` begins here."""
        self._start = self.step

    def on_train_begin(self, logs=None):
        # a wish of the last step before a validation, which `fit` forgot
        self._machine.stops(self._trainer, self._stop.received, together=False)

    def on_train_batch_end(self, batch, logs=None):
        self.step = self._start + batch + 1
        loss = self._trainer.last_step["batch_loss"]
        self._losses.append(loss)
        self._progress.update(self.step, loss)
        settings = self._settings
        if self.step % settings.log_every == 0 or self.step == settings.steps:
            self._write_log()
        saves = self.step % settings.save_every == 0 or self.step == settings.steps
        saves = saves or self.step in settings.keep_step_numbers()
        together = self.step % settings.log_every == 0
        if self._machine.stops(self._trainer, self._stop.received, together):
            saves = self._trainer.stop_training = True
        if saves:
            with self._progress.paused():
                self._saver.save(self.model, self.step, self._losses)

    def _write_log(self):
        if self._log is not None:
            self._log.train(
                step=self.step,
                loss=sum(self._losses) / len(self._losses),
                learning_rate=float(self._schedule(self.step - 1)),
                gradient_norm=self._trainer.last_step["gradient_norm"],
                tokens_per_second=self._progress.tokens_per_second,
                flop_utilisation=self._progress.flop_utilisation,
                seconds=self._progress.seconds + self._log.start_seconds,
                skipped_steps=self._trainer.last_step["skipped_steps"],
            )
        self._losses.clear()
