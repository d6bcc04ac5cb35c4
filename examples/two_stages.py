"""A study of two stages: many short runs, and the best method of them once more, for longer.

keras-tupe study examples/two_stages.py --data rows --positions none absolute tupe_r --out two
"""

import dataclasses
import functools

import keras

from keras_tupe import TupeBackbone, TupeMaskedLM, data
from keras_tupe.trainer import LinearWarmupDecay, Trainer, adamw
from training.command.settings import COUNT, setting, wrong_fields
from training.study.study import Run, Study, StudyOptions, Work


@dataclasses.dataclass(frozen=True)
class Settings(StudyOptions):
    """The options of the command line."""

    data: str | None = setting(None, "Folder of rows of `keras-tupe prepare`.", counts=False)
    positions: tuple = setting(("absolute", "tupe_r"), "Methods.", counts=False)
    short: int = setting(100, "Steps of the first stage.", rule=COUNT, counts=False)
    long: int = setting(1000, "Steps of the second stage.", rule=COUNT, counts=False)

    def problems(self):
        return [*wrong_fields(self).values(), *self.out_problems()]


class TwoStages(Work):
    """Short runs, then a long one; log-likelihoods are of the tokens hidden in the last batch."""

    def plan(self, results):
        firsts = [self.run("short", self.settings.short, name) for name in self.settings.positions]
        yield from firsts
        found = results.numbers("position", score="short log-likelihood")
        if found:  # asked again when the first stage is done
            best = max(found, key=lambda name: found[name][0])
            yield self.run("long", self.settings.long, best, tuple(firsts))

    def run(self, stage, steps, position, after=()):
        rows = data.PreparedRows(self.settings.data, "train")
        shared = {"steps": steps, "rows": data.split_hash(rows.record, "train")}
        do = functools.partial(self.train, stage, steps, position, rows)
        place = {"position": position, "seed": 0}
        return Run(f"{stage}/{position}", do, place, shared, place, kind=stage, after=after)

    def train(self, stage, steps, position, prepared, folder):
        keras.utils.set_random_seed(0)
        rows = data.Rows(prepared, data.Masking.of(prepared.vocabulary), batch_size=8, seed=0)
        backbone = TupeBackbone(prepared.vocabulary.size, 1, 2, 16, 32, position=position)
        trainer = Trainer(TupeMaskedLM(backbone))
        trainer.compile(adamw(LinearWarmupDecay(1e-3, steps, steps // 10)))
        trainer.fit(data.tf_dataset(rows, num_steps=steps), verbose=0, shuffle=False)
        value = -float(trainer.last_step["batch_loss"])
        return {"scores": [{"score": f"{stage} log-likelihood", "value": value}]}


STUDY = Study(__doc__, Settings, TwoStages)
