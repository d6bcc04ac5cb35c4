"""The checkpoints of a run, and what they must agree with."""

import json

from keras_tupe.trainer import read_state, write_state


class Saver:
    """Checkpoints of one run, with what they must agree with.

    Args:
        checkpoints: a `Checkpoints`.
        identity: dictionary of the settings that a run keeps, JSON values.
        data: dictionary that tells the rows apart, JSON values.
        allow_change: names of settings that may differ; `"data"` for the rows. `None` where a
            command does not ask for any.
        writes: whether this worker writes; the others only read.
    """

    def __init__(self, checkpoints, identity, data, allow_change, writes):
        self._checkpoints = checkpoints
        self._facts = {"settings": identity, "data": data}
        self._allow_change = set(allow_change or ())
        self._may_allow = allow_change is not None
        self._writes = writes
        self.losses = ()  # those that the restored checkpoint was saved with

    def restore(self, trainer):
        """Puts the last checkpoint's state into a trainer; returns its step, 0 without one."""
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
        ours = json.loads(json.dumps(self._facts))  # as JSON gives them back
        before, now = facts.get("settings"), ours["settings"]
        before = before if isinstance(before, dict) else {}
        names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        changes = {name: f"{name}: {before.get(name)!r} -> {now.get(name)!r}" for name in names}
        if facts.get("data") != ours["data"]:
            changes["data"] = f"data: {facts.get('data')} -> {ours['data']}"
        refused = [text for name, text in changes.items() if name not in self._allow_change]
        if refused:
            way_out = ", or name in --allow-change what may change on its way"
            raise ValueError(
                "The run in --out was begun with other settings. Give it another --out"
                f"{way_out if self._may_allow else ''}. Received: {'; '.join(refused)}"
            )

    def save(self, trainer, step, losses):
        """Writes a checkpoint of a step, with the losses since the last line of the log."""
        if self._writes and step not in self._checkpoints.steps():
            facts = {**self._facts, "losses": losses}
            self._checkpoints.save(step, read_state(trainer), facts)

    def last_good(self):
        """Returns the path of the last checkpoint, or "none"."""
        step = self._checkpoints.latest()
        return "none" if step is None else str(self._checkpoints.path(step))
