"""A study of one's own: which learning rate has the lowest loss, with how much luck?

keras-tupe study examples/learning_rates.py --data rows --rates 1e-3 3e-3 1e-2 --out rates
"""

import dataclasses
import functools

import keras

from keras_tupe import TupeBackbone, TupeMaskedLM, data
from keras_tupe.trainer import LinearWarmupDecay, Trainer, adamw
from training.command.settings import COUNT, counting, setting, wrong_fields
from training.study.study import Run, Score, Study, StudyOptions, Work


@dataclasses.dataclass(frozen=True)
class Settings(StudyOptions):
    """The options of the command line."""

    data: str | None = setting(None, "Folder of rows of `keras-tupe prepare`.", counts=False)
    rates: tuple = setting(("1e-3", "3e-3"), "Highest learning rates.", counts=False)
    seeds: int = setting(3, "Runs of each.", rule=COUNT, counts=False)
    steps: int = setting(200, "Steps of a run.", rule=COUNT)

    def problems(self):
        return [*wrong_fields(self).values(), *self.out_problems()]


class Sweep(Work):
    """A run for each rate and seed."""

    by = "learning rate"

    def plan(self, results):
        rows = data.PreparedRows(self.settings.data, "train")
        shared = {**counting(self.settings), "rows": data.split_hash(rows.record, "train")}
        for rate in self.settings.rates:
            for seed in range(self.settings.seeds):
                do = functools.partial(self.train, rows, float(rate), seed)
                place = {"learning rate": rate, "seed": seed}
                yield Run(f"rate-{rate}/seed-{seed}", do, place, shared, place)

    def train(self, prepared, rate, seed, folder):
        steps = self.settings.steps
        keras.utils.set_random_seed(seed)
        rows = data.Rows(prepared, data.Masking.of(prepared.vocabulary), batch_size=8, seed=seed)
        backbone = TupeBackbone(prepared.vocabulary.size, 1, 2, 16, 32)
        trainer = Trainer(TupeMaskedLM(backbone))
        trainer.compile(adamw(LinearWarmupDecay(rate, steps, steps // 10)))
        trainer.fit(data.tf_dataset(rows, num_steps=steps), verbose=0, shuffle=False)
        loss = float(trainer.last_step["batch_loss"])
        return {"scores": [{"score": "last loss", "value": loss}]}

    def scores(self, results):
        return [Score("last loss", "nats", ".3f", lower=True)]


STUDY = Study(__doc__, Settings, Sweep)
