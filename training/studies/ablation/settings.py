"""The settings of an ablation, and what each run has of them."""

import argparse
import dataclasses
import functools
import json

from training.command.settings import COUNT, setting, values_of
from training.command.variant import parse
from training.command.without_keras import method_names
from training.machine.cost import CURVE_POINTS
from training.pretrain import settings as pretrain_settings
from training.pretrain.settings import scaled_warmup
from training.studies.ablation.checks import OWN_CHOICE, find_problems
from training.study.study import StudyOptions

_PRETRAIN = {
    field.name: field
    for field in dataclasses.fields(pretrain_settings.Settings)
    if "help" in field.metadata
}
# What all runs have in common, with the names, the help and the defaults of training.pretrain.
PASSED_ON = tuple(
    name
    for name in _PRETRAIN
    if name not in (*OWN_CHOICE, "out", "config", "preset", "allow_change")
)
ALL = "all"


def _copy(name, text=None):
    field = _PRETRAIN[name]
    default = field.default if text is None else None
    return name, field.type, setting(default, text or field.metadata["help"])


_Shared = dataclasses.make_dataclass(
    "_Shared",
    [*map(_copy, PASSED_ON), *(_copy(name, argparse.SUPPRESS) for name in OWN_CHOICE)],
    frozen=True,
)


@dataclasses.dataclass(frozen=True)
class Settings(_Shared, StudyOptions):
    """Settings of an ablation, besides those of each run."""

    positions: tuple = setting(
        (),
        "Positional methods: a name of `keras-tupe list methods`, "
        "NAME:option=value, a .py file that defines one, or all.",
    )
    objectives: tuple = setting(
        (),
        "Objectives to compare, in place of --objective: each has an ablation in OUT/OBJECTIVE, "
        "whose runs cost the FLOPs of those of the first, which have --steps.",
    )
    seeds: int = setting(3, "Runs of each method; their seeds are 0, 1, 2, ...", rule=COUNT)
    baseline: str = setting("absolute", "The method that the others are compared with.")
    config: str | None = setting(None, _PRETRAIN["config"].metadata["help"])
    report_only: bool = setting(
        False, "Whether only the report is written, of the runs in --out that are finished."
    )
    tasks: tuple = setting((), "GLUE tasks that each run is fine-tuned on.")
    glue: str | None = setting(None, "Folder of GLUE's files, or tfds, for --tasks.")
    glue_options: str = setting(
        "", "More options of keras-tupe finetune glue, such as '--seeds 1 --epochs 2'."
    )
    squad_train: str | None = setting(None, "SQuAD's training file, if runs are to answer it.")
    squad_dev: str | None = setting(None, "SQuAD's dev file.")
    squad_options: str = setting("", "More options of keras-tupe finetune squad.")
    blimp: str | None = setting(None, "Folder of BLiMP's files, if runs are to be scored on it.")
    blimp_options: str = setting("", "More options of `keras-tupe evaluate blimp`.")
    long_rows: str | None = setting(
        None,
        "Folder of rows, of the same vocabulary and maybe longer, whose losses are to be known by "
        "position; for --objective causal_lm.",
    )
    perplexity_options: str = setting("", "More options of `keras-tupe evaluate perplexity`.")
    given: dict = dataclasses.field(default_factory=dict, repr=False, compare=False)

    fitted = staticmethod(pretrain_settings.Settings.fitted)

    def problems(self):
        """Returns a sentence for each mistake."""
        return find_problems(self)

    def position_texts(self):
        """Returns the texts of `--positions`, without commas; `all` is all methods there are."""
        found = values_of(self.positions)  # a file of settings may have commas too
        return [
            text
            for word in found
            if word.strip(",")
            for text in (method_names() if word == ALL else [word])
        ]

    @functools.cached_property
    def variants(self):
        """The `Variant` of each method, in the order of `--positions`; not with `report_only`."""
        return [parse(text) for text in self.position_texts()]

    def pretraining(self, variant, seed, out):
        """Returns the `training.pretrain` settings of a run.

        Where neither command line nor file say otherwise, the warm-up is the share of the steps
        that it is in the defaults of `training.pretrain`, and there are `CURVE_POINTS` validations.

        Args:
            variant: a `Variant`.
            seed: an integer >= 0.
            out: folder of the run.
        """
        values = {name: getattr(self, name) for name in PASSED_ON}
        if "warmup_steps" not in self.given:
            usual = (_PRETRAIN[name].default for name in ("warmup_steps", "steps"))
            values["warmup_steps"] = scaled_warmup(*usual, self.steps)
        if "valid_every" not in self.given:
            values["valid_every"] = max(round(self.steps / CURVE_POINTS), 1)
        if variant.file is None:
            values["position"] = variant.position
        return pretrain_settings.Settings(
            **values,
            position_file=variant.file,
            position_options=json.dumps(variant.options, sort_keys=True),
            seed=seed,
            out=str(out),
        )
