"""The presets of a run: that of its last step, and those of steps on its way."""

import pathlib
import shutil

from training.presets.of_run import preset_at
from training.pretrain import model


class PresetWriter:
    """Writes the presets of a run, each whole or not at all.

    A preset on the way is written after the checkpoint of its step, and before any later one: so
    whoever goes on from a checkpoint writes what is missing of that step alone.

    Args:
        out: folder of the run.
        steps: the steps on the way, ascending.
        machine: the devices, see `training.machine.devices`.
        vocabulary: that of the rows.
        length: tokens of a row.
    """

    def __init__(self, out, steps, machine, vocabulary, length):
        self._out, self._steps, self._machine = pathlib.Path(out), steps, machine
        self._vocabulary, self._length = vocabulary, length

    def check(self, step):
        """Refuses a run that has gone past a step whose preset it does not have.

        Args:
            step: steps done.

        Raises:
            ValueError: naming the steps.
        """
        gone = [one for one in self._steps if one < step and not preset_at(self._out, one).exists()]
        if gone:
            raise ValueError(
                "--preset-steps must be steps that are still to come where there is no preset of "
                f"them yet: leave out those that are over. Received: {', '.join(map(str, gone))}, "
                f"and the last checkpoint is that of step {step}"
            )

    def is_due(self, step):
        """Returns whether the preset of this step is wanted and not there."""
        return step in self._steps and not preset_at(self._out, step).exists()

    def write(self, trained, step=None):
        """Writes a preset.

        All workers write, since reading weights may need all of them; one is kept.

        Args:
            trained: the model.
            step: steps done; `None` for the preset of the end.

        Returns:
            Its folder, for the worker that keeps it; `None` for the others.
        """
        folder, worker = preset_at(self._out, step), self._machine.worker
        partial = self._out / f".partial.{folder.name}.{worker}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        tokenizer = model.tokenizer_of(self._vocabulary)
        model.save_preset(trained, tokenizer, self._length, partial)
        self._machine.gathered([worker])  # no one leaves before all have written
        if worker != 0:
            shutil.rmtree(partial, ignore_errors=True)
            return None
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        partial.rename(folder)
        return folder
