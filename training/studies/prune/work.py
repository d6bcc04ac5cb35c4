"""The runs of a curve: one model for each kind, share and order, scored and kept as numbers."""

import dataclasses
import functools
import pathlib

import keras
import numpy as np

from keras_tupe import positions
from keras_tupe.analysis import head_importance
from keras_tupe.models import lowest_heads, prune_heads, prune_weights, share_of_zeros
from training.presets.folder import check_preset_space, preset_digest
from training.presets.load import load_preset
from training.studies.prune.latency import latencies
from training.studies.prune.report import report
from training.studies.prune.tasks import make_task
from training.study.folder import read_found
from training.study.study import Run, Work

IMPORTANCE, SIZE, RANDOM = "importance", "size", "random"


@dataclasses.dataclass(frozen=True)
class Point:
    """A pruned model of a curve: heads or weights, by importance, size or at random."""

    kind: str
    share: float
    order: str
    seed: int = 0

    @property
    def name(self):
        """Folder of its run."""
        order = f"{self.order}-{self.seed}" if self.order == RANDOM else self.order
        return f"{self.kind}/share-{self.share:g}/{order}"


WHOLE = Point("none", 0.0, "none")


def points_of(settings):
    """Returns the points of all curves, the model as it is last."""
    found = []
    for kind, order in (("heads", IMPORTANCE), ("weights", SIZE)):
        for share in settings.shares(kind):
            found.append(Point(kind, share, order))
            found += [Point(kind, share, RANDOM, seed) for seed in range(settings.seeds)]
    return [*found, WHOLE]


class Prune(Work):
    """The curves of a preset; see `Work`."""

    def __init__(self, settings):
        super().__init__(settings)
        if settings.position_file is not None:
            positions.load_file(settings.position_file)
        self._task, self._given, self._text = make_task(settings)
        self._points = points_of(settings)

    def plan(self, results):
        """Yields the classifier where the preset is none, the importance, all points, the times."""
        settings = self.settings
        preset = preset_digest(settings.preset, settings.position_file)
        known, before = {"preset": preset, **self._task.identity}, ()
        if self._is_to_be_fine_tuned:
            shared = {**known, "epochs": settings.epochs}
            before = (Run("classifier", self._fine_tune, {}, shared, kind="classifier", work=30),)
        names = ("rows", "normalize", "epochs")
        shared = {**known, **{name: getattr(settings, name) for name in names}}
        first = Run(IMPORTANCE, self._find_importance, {}, shared, kind=IMPORTANCE, after=before)
        yield from (*before, first)
        for point in self._points:
            place = dataclasses.asdict(point)
            do = functools.partial(self._score, point)
            yield Run(point.name, do, place, shared, place, kind="point", after=(first,))
        if settings.rounds:
            names = ("latency_batch", "latency_length", "rounds")
            shared = {**shared, **{name: getattr(settings, name) for name in names}}
            own = {"points": [point.name for point in self._exported()]}
            yield Run(
                "latency", self._time, {}, shared, own, kind="latency", after=(first,), work=10
            )

    @property
    def _is_to_be_fine_tuned(self):
        return self.settings.task == "sst2" and self._task.classifier is None

    @functools.cached_property
    def _model(self):
        """The whole model."""
        model = self._given
        if self._is_to_be_fine_tuned:
            model, _ = load_preset(pathlib.Path(self.settings.out) / "classifier" / "preset")
        elif self.settings.task == "sst2":
            model = self._task.classifier
        positions.get(model.backbone.position).check_pruned(model.backbone.position)
        return model

    @functools.cached_property
    def _importance(self):
        found = read_found(pathlib.Path(self.settings.out) / IMPORTANCE)
        return np.array(found["importance"], "float64")

    def _fine_tune(self, folder):
        model = self._task.new_classifier(folder)
        self._keep(model, folder)
        right, total = self._task.score(model)
        return {"right": right, "total": total}

    def _find_importance(self, folder):
        task, model = self._task, self._model
        found = head_importance(
            model.backbone, task.losses(model), task.batches(), self.settings.normalize
        )
        return {"importance": [[None if np.isnan(x) else float(x) for x in row] for row in found]}

    def _pruned(self, point):
        """Returns the pruned model of a point, and the heads that it lost."""
        model, backbone = self._model, self._model.backbone
        if point.kind == "heads":
            order = self._importance
            if point.order == RANDOM:
                order = np.random.default_rng(point.seed).random(order.shape)
                order = np.where(np.isnan(self._importance), np.nan, order)
            removed = lowest_heads(order, point.share, backbone.num_groups)
            return prune_heads(model, removed), removed
        if point.kind == "weights":
            seed = point.seed if point.order == RANDOM else None
            return prune_weights(model, point.share, seed), {}
        return model, {}

    def _score(self, point, folder):
        keras.utils.set_random_seed(point.seed)
        model, removed = self._pruned(point)
        if point != WHOLE:
            model = self._task.trained(model, point.seed, folder)
        right, total = self._task.score(model)
        if self.settings.keep_presets and point != WHOLE:
            self._keep(model, folder)
        return {
            "scores": [{"score": "right answers (%)", "value": 100 * right / total}],
            "right": right,
            "total": total,
            "removed": {str(layer): heads for layer, heads in removed.items()},
            "heads": sum(map(len, model.backbone.config.heads)),
            "parameters": int(model.backbone.count_params()),
            "zeros": share_of_zeros(model),
        }

    def _keep(self, model, folder):
        is_sst2 = self.settings.task == "sst2"
        model.preprocessor = self._task.preprocessor if is_sst2 else self._text
        check_preset_space(model, folder)
        model.save_to_preset(str(folder / "preset"))

    def _exported(self):
        """Returns the points whose exports are timed: those that are not random."""
        points = [point for point in self._points if point.order == IMPORTANCE]
        sizes = [point for point in self._points if point.order == SIZE]
        return [WHOLE, *points, *sizes[-1:]]

    def _time(self, folder):
        settings, backbone = self.settings, self._model.backbone
        length = settings.latency_length or settings.length
        if backbone.has_length_limit:
            length = min(length, backbone.max_sequence_length)
        models = {point.name: self._pruned(point)[0].backbone for point in self._exported()}
        found = latencies(models, (settings.latency_batch, length), settings.rounds)
        return {"milliseconds": found, "batch": settings.latency_batch, "length": length}

    def report(self, results):
        """Returns the tables and the picture of the curves."""
        settings, task = self.settings, self._task
        importance, latency = results.get(IMPORTANCE), results.get("latency")
        numbers = {
            "preset": settings.preset,
            "task": settings.task,
            "title": task.title,
            "position": self._given.position
            if hasattr(self._given, "position")
            else self._given.backbone.position,
            "chance": task.chance,
            "skipped": task.skipped,
            "finetune_epochs": settings.finetune_epochs,
            "importance": importance and importance.found["importance"],
            "points": [{**run.place, **run.found} for run in results.of("point")],
            "latency": latency and latency.found,
        }
        found = report(numbers)
        found.pictures["study.png"] = functools.partial(_draw, numbers)
        return found


def _draw(numbers, path):
    from training.studies.prune.picture import draw_pruning  # matplotlib is not on every machine

    draw_pruning(path, numbers)
