"""The runs of a curve: one model for each kind, share and order, scored and kept as numbers."""

import dataclasses
import pathlib

import keras
import numpy as np

from keras_tupe import positions
from keras_tupe.analysis import head_importance, name_patterns
from keras_tupe.models import lowest_heads, prune_heads, prune_weights, share_of_zeros
from training.command.grid import Cell
from training.presets.folder import check_preset_space, preset_digest
from training.presets.load import load_preset
from training.prune.latency import latencies
from training.prune.tasks import make_task

IMPORTANCE, SIZE, RANDOM = "importance", "size", "random"
_POSITIONS = 33  # tokens of the matrices whose patterns are named
_WORK = {"classifier": 30, "latency": 10}


@dataclasses.dataclass(frozen=True)
class Point:
    """A pruned model of a curve.

    Attributes:
        kind: `"heads"` or `"weights"`.
        share: share that is removed.
        order: `"importance"` or `"size"`, or `"random"`.
        seed: of the random order; 0 for the others.
    """

    kind: str
    share: float
    order: str
    seed: int = 0

    @property
    def name(self):
        """Folder of its run."""
        order = f"{self.order}-{self.seed}" if self.order == RANDOM else self.order
        return f"{self.kind}/share-{self.share:g}/{order}"


def points_of(settings):
    """Returns the points of all curves but the model as it is.

    Args:
        settings: a `Settings` without problems.
    """
    found = []
    for kind, order in (("heads", IMPORTANCE), ("weights", SIZE)):
        for share in settings.shares(kind):
            found.append(Point(kind, share, order))
            found += [Point(kind, share, RANDOM, seed) for seed in range(settings.seeds)]
    return found


def measure_curves(settings, grid):
    """Does what is not done yet of the curves of a command.

    Args:
        settings: a `Settings` without problems.
        grid: the `Grid` of its folder.

    Returns:
        Dictionary, the part of `results.json` that comes out of the runs.

    Raises:
        ValueError: if preset, data or output folder cannot be used.
    """
    if settings.position_file is not None:
        positions.load_file(settings.position_file)
    task, model, _ = make_task(settings)
    known = {"preset": preset_digest(settings.preset, settings.position_file), **task.identity}
    if settings.task == "sst2":
        model = task.classifier or _fine_tuned(settings, task, grid, known)
    positions.get(model.backbone.position).check_pruned(model.backbone.position)
    runs = _Runs(settings, task, model, known)
    found = runs.of(grid)
    importance = found["importance"]["importance"]
    backbone = model.backbone
    return {
        "commit": grid.commits(found),
        "preset": settings.preset,
        "task": settings.task,
        "title": task.title,
        "position": backbone.position,
        "chance": task.chance,
        "skipped": task.skipped,
        "rows": settings.rows,
        "normalized": settings.normalize,
        "finetune_epochs": settings.finetune_epochs,
        "seconds": sum(metrics.get("seconds", 0) for metrics in found.values()),
        "importance": importance,
        "patterns": patterns_of(backbone),
        "points": [{**dataclasses.asdict(point), **found[point.name]} for point in runs.all_points],
        "latency": found.get("latency"),
    }


def _fine_tuned(settings, task, grid, known):
    """Returns the classifier of a preset that is none, fine-tuned before or now."""
    cell = Cell(
        "classifier",
        {**known, "epochs": settings.epochs},
        _WORK["classifier"],
    )

    def do(cell, folder):
        model = task.new_classifier(folder)
        model.preprocessor = task.preprocessor
        check_preset_space(model, folder)
        model.save_to_preset(str(folder / "preset"))
        right, total = task.score(model)
        return {"right": right, "total": total}

    grid.run([cell], do)
    model, _ = load_preset(pathlib.Path(settings.out) / cell.name / "preset")
    return model


class _Runs:
    """The cells of the grid of a command, and how each is done."""

    def __init__(self, settings, task, model, known):
        self._settings, self._task, self._model = settings, task, model
        self._points = {point.name: point for point in points_of(settings)}
        self._whole = Point("none", 0.0, "none")
        self._points[self._whole.name] = self._whole
        self._importance = None
        self._known = known

    @property
    def all_points(self):
        return list(self._points.values())

    def of(self, grid):
        """Returns the metrics of all runs by name."""
        settings = self._settings
        ways = {name: getattr(settings, name) for name in ("rows", "normalize", "epochs")}
        first = Cell("importance", {**self._known, **ways})
        found = grid.run([first], self._do_importance)
        self._importance = np.array(found[first.name]["importance"], "float64")
        cells = [
            Cell(name, {**self._known, **ways, **dataclasses.asdict(point)})
            for name, point in self._points.items()
        ]
        found |= grid.run(cells, self._do_point, _accuracy)
        if settings.rounds:
            of_request = ("latency_batch", "latency_length", "rounds")
            asked = {name: getattr(settings, name) for name in of_request}
            names = {"points": [point.name for point in self._exported()]}
            cell = Cell("latency", {**self._known, **ways, **asked, **names}, _WORK["latency"])
            found |= grid.run([cell], self._do_latency)
        return found

    def _do_importance(self, cell, folder):
        task, model = self._task, self._model
        found = head_importance(
            model.backbone, task.losses(model), task.batches(), self._settings.normalize
        )
        rows = [[None if np.isnan(x) else float(x) for x in row] for row in found]
        return {"importance": rows}

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

    def _do_point(self, cell, folder):
        point = self._points[cell.name]
        keras.utils.set_random_seed(point.seed)
        model, removed = self._pruned(point)
        if point is not self._whole:
            model = self._task.trained(model, point.seed, folder)
        right, total = self._task.score(model)
        if self._settings.keep_presets and point is not self._whole:
            model.preprocessor = self._preprocessor()
            check_preset_space(model, folder)
            model.save_to_preset(str(folder / "preset"))
        return {
            "right": right,
            "total": total,
            "removed": {str(layer): heads for layer, heads in removed.items()},
            "heads": sum(map(len, model.backbone.config.heads)),
            "parameters": int(model.backbone.count_params()),
            "zeros": share_of_zeros(model),
        }

    def _preprocessor(self):
        if self._settings.task == "sst2":
            return self._task.preprocessor
        return load_preset(self._settings.preset)[1]

    def _exported(self):
        """Returns the points whose exports are timed: those that are not random."""
        points = [point for point in self._points.values() if point.order == IMPORTANCE]
        sizes = [point for point in self._points.values() if point.order == SIZE]
        return [self._whole, *points, *sizes[-1:]]

    def _do_latency(self, cell, folder):
        settings, backbone = self._settings, self._model.backbone
        length = settings.latency_length or settings.length
        if backbone.has_length_limit:
            length = min(length, backbone.max_sequence_length)
        models = {point.name: self._pruned(point)[0].backbone for point in self._exported()}
        shape = (settings.latency_batch, length)
        found = latencies(models, shape, settings.rounds)
        return {"milliseconds": found, "batch": settings.latency_batch, "length": length}


def _accuracy(metrics):
    if "right" not in metrics:
        return "done"
    return f"{metrics['right'] / metrics['total']:.1%}"


def patterns_of(backbone):
    """Returns the name of the pattern of each head, by its number, or `None`.

    They are named by the position bias that all layers share, so that a head has the same one in
    every layer; a method without such a bias has none.

    Args:
        backbone: a `TupeBackbone`.
    """
    if backbone.position_bias is None or backbone.is_causal:
        return None
    length = _POSITIONS
    if backbone.has_length_limit:
        length = min(length, backbone.max_sequence_length)
    width = backbone.embedding_dim or backbone.hidden_dim
    bias = backbone.position_bias(np.zeros((1, length, width), "float32"))
    names = name_patterns(keras.ops.convert_to_numpy(bias)[0])
    heads = sorted({head for layer in backbone.config.heads for head in layer})
    return {str(head): name for head, name in zip(heads, names, strict=True)}
