"""What XLA compiles in a run, written at its first step, so that a resumed run goes on alike."""

import keras

from keras_tupe import data
from keras_tupe._json_file import parse_json
from training.machine.devices import has_gpu
from training.machine.settings import XLA

FILE = "xla.json"


class XlaRecord:
    """The choice of `--xla auto` on CPUs, in a file of the run's folder.

    Compiled or not, the same step is rounded differently and draws other dropout masks; so what a
    run was begun with counts, not what would be measured when it goes on.

    Args:
        out: `pathlib.Path` of the run's folder.
        choice: the setting `xla`.
    """

    def __init__(self, out, choice):
        self._path, self._choice = out / FILE, choice
        backend = keras.backend.backend()
        self._counts = choice == "auto" and backend == "tensorflow" and not has_gpu()

    def argument(self, step):
        """Returns the argument `xla` of the trainer.

        Args:
            step: steps that the run has done.

        Raises:
            ValueError: if the file is damaged.
        """
        if not self._counts:
            return XLA[self._choice]
        if not self._path.exists():
            return False if step else "auto"  # begun before there was a choice
        try:
            compiles = parse_json(self._path.read_text())["compiles_passes"]
        except (ValueError, KeyError, TypeError, UnicodeDecodeError):
            compiles = None
        if not isinstance(compiles, bool):
            raise ValueError(
                f"{FILE} must be as the run wrote it. Say what it is to be: --xla on or --xla off. "
                f"Received: {str(self._path)!r}"
            )
        return compiles

    def write(self, trainer):
        """Writes what a trainer chose at its first step, unless that is written already.

        Returns:
            A sentence for the log, or `None` if nothing was measured.
        """
        if not self._counts or self._path.exists() or trainer.compiles_passes is None:
            return None
        record = {"compiles_passes": trainer.compiles_passes, "seconds": trainer.pass_seconds}
        partial = self._path.with_name(f".partial.{FILE}")
        data.write_json(partial, record)
        partial.replace(self._path)
        if len(trainer.pass_seconds) < 2:
            return None
        plain, compiled = (f"{1000 * seconds:,.0f}" for seconds in trainer.pass_seconds)
        verb = "compiles" if trainer.compiles_passes else "does not compile"
        return (
            f"XLA {verb} forward and backward pass: {compiled} ms compiled, {plain} ms as they are"
        )
