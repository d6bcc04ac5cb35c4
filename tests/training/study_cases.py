"""A study of a user's own file, which trains nothing."""

TOY = '''
"""A toy."""
import dataclasses, functools, pathlib

from training.command.settings import COUNT, counting, setting, wrong_fields
from training.study.study import Run, RunError, Study, StudyOptions, Work
from keras_tupe.trainer import NonFiniteError


@dataclasses.dataclass(frozen=True)
class Settings(StudyOptions):
    """Settings."""

    positions: tuple = setting(("a", "b"), "Names.", counts=False)
    seeds: int = setting(3, "Runs of each.", rule=COUNT, counts=False)
    steps: int = setting(DEFAULT, "Steps.")
    diverges: str = setting("", "A run.", counts=False)
    fails: str = setting("", "A run.", counts=False)
    more: int = setting(0, "Settings of the second stage.", counts=False)

    def problems(self):
        return [*wrong_fields(self).values(), *self.out_problems()]


class Toy(Work):
    def plan(self, results):
        firsts = []
        for position in self.settings.positions:
            for seed in range(self.settings.seeds):
                name = f"{position}/seed-{seed}/train"
                do = functools.partial(self.train, name, len(position) + seed)
                first = Run(name, do, {"position": position, "seed": seed},
                            counting(self.settings), {"seed": seed}, resumes=True)
                firsts.append(first)
                yield first
        numbers = results.numbers("position", score="loss")  # known from the first stage
        if numbers:
            best = min(numbers, key=lambda name: sum(numbers[name].values()))
            (first, *_) = [one for one in firsts if one.place["position"] == best]
            yield Run(f"{best}/test", self.test, first.place, {"more": self.settings.more},
                      kind="test", after=(first,))

    def train(self, name, value, folder):
        with (pathlib.Path(self.settings.out).parent / "calls").open("a") as file:
            file.write(f"{name}\\n")
        if name == self.settings.diverges:
            raise NonFiniteError(7, 0)
        if name == self.settings.fails:
            raise RunError("the reason")
        (folder / "half").write_text("half")
        (folder / "model").write_text(str(value))
        return {"scores": [{"score": "loss", "value": value / self.settings.steps}]}

    def test(self, folder):
        return {"scores": [{"score": "tested", "value": 100.0}]}


STUDY = Study(__doc__, Settings, Toy)
'''


def write_toy(folder, default=2):
    """Writes the study, with a default of `steps`; returns the path as a text."""
    path = folder / "toy.py"
    path.write_text(TOY.replace("DEFAULT", str(default)))
    return str(path)
