"""The settings of `benchmarks.methods`."""

import dataclasses
import pathlib

from benchmarks.harness.checks import SIZES, Lists, wrong_numbers
from benchmarks.harness.environments import PEER, folder_of
from training.command.checks import no_folder
from training.command.settings import COUNT, setting, wrong_fields
from training.command.without_keras import method_names


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.methods`."""

    positions: tuple = setting(("all",), "Position methods, .py files that define one, or all.")
    lengths: tuple = setting((128, 512, 2048), "Sequence lengths in tokens, each >= 1.")
    rounds: int = setting(11, "Interleaved rounds.", rule=COUNT)
    size: str = setting("mini", "Size of the encoder.", one_of=SIZES)
    tokens: int = setting(2048, "Tokens of a batch; at least one sequence is taken.", rule=COUNT)
    times: bool = setting(True, "Measure times.")
    memory: bool = setting(True, "Measure peak memory.")
    peer: bool = setting(True, "Time transformers' BERT too.")
    peer_environment: str = setting(str(PEER.default_folder()), "Made if it is not there.")
    out: str = setting("benchmarks/results", "Folder to write methods.json and methods.md to.")

    NUMBERS = ("lengths",)

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        found = [
            *wrong_numbers(self, "lengths"),
            *wrong_fields(self).values(),
            *no_folder(self.out),
            *self._methods()[2],
        ]
        if not (self.times or self.memory):
            found.append("There must be something to measure. Received: --no-times --no-memory")
        if self.peer:
            found += filter(None, [PEER.problem(folder_of(self.peer_environment))])
        return found

    @property
    def names(self):
        """Names of the methods; those of files are loaded."""
        return self._methods()[0]

    @property
    def files(self):
        """Paths of the files among them."""
        return self._methods()[1]

    def _methods(self):
        """Returns names, files, and a sentence for each that cannot be."""
        known = method_names()
        if self.positions == ("all",):
            return tuple(known), (), []
        if set(self.positions) <= set(known):  # no record is needed, nor Keras
            return self.positions, (), []
        from keras_tupe import positions

        names, files, problems = [], [], []
        for item in self.positions:
            try:
                if item.endswith(".py"):
                    names.append(positions.load_file(item))
                    files.append(str(pathlib.Path(item).resolve()))
                else:
                    positions.get(item)
                    names.append(item)
            except ValueError as error:
                problems.append(str(error))
        return tuple(dict.fromkeys(names)), tuple(files), problems
