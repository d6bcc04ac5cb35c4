"""The settings of `training.ablate`: which runs, and what each has from `training.pretrain`."""

import argparse
import dataclasses
import functools
import json

from training.ablate import checks
from training.command.settings import setting
from training.presets.variant import parse
from training.pretrain import settings as pretrain_settings
from training.pretrain.scaled_steps import scaled_warmup

# What all runs have in common, with the names, the help and the defaults of training.pretrain.
PASSED_ON = (
    "data",
    "size",
    "dropout",
    "normalize_first",
    "initializer_range",
    "layer_norm_epsilon",
    "max_sequence_length",
    "mask_rate",
    "whole_word",
    "mask_special",
    "batch_size",
    "micro_batches",
    "steps",
    "warmup_steps",
    "learning_rate",
    "weight_decay",
    "decay_all",
    "beta_1",
    "beta_2",
    "clip_norm",
    "strategy",
    "precision",
    "xla",
    "steps_per_call",
    "deterministic",
    "peak_flops",
    "valid_every",
    "valid_batches",
    "save_every",
    "keep",
    "log_every",
    "tensorboard",
    "skip_bad_steps",
)
# What a file of settings for training.pretrain may hold and an ablation decides by itself.
OWN_CHOICE = ("position", "position_options", "position_file", "seed", "keep_steps")
CURVE_POINTS = 20  # validations of a run, where --valid-every is not given
_PRETRAIN = {field.name: field for field in dataclasses.fields(pretrain_settings.Settings)}


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
class Settings(_Shared):
    """Settings of `training.ablate`, besides those of each run."""

    positions: tuple = setting(
        (),
        "Positional methods, by spaces or commas: a name of `python -m training.methods`, "
        "NAME:option=value, a .py file that defines one, or all.",
    )
    seeds: int = setting(3, "Runs of each method, >= 1; their seeds are 0, 1, 2, ...")
    baseline: str = setting("absolute", "The method that the others are compared with.")
    out: str | None = setting(
        None, "Folder of all runs and of the report; the same command continues what is there."
    )
    config: str | None = setting(None, _PRETRAIN["config"].metadata["help"])
    report_only: bool = setting(
        False, "Whether only the report is written, of the runs in --out that are finished."
    )
    tasks: tuple = setting((), "GLUE tasks that each run is fine-tuned on.")
    glue: str | None = setting(None, "Folder of GLUE's files, or tfds, for --tasks.")
    glue_options: str = setting(
        "", "More options of training.finetune_glue, such as '--seeds 1 --epochs 2'."
    )
    squad_train: str | None = setting(None, "SQuAD's training file, if runs are to answer it.")
    squad_dev: str | None = setting(None, "SQuAD's dev file.")
    squad_options: str = setting("", "More options of training.finetune_squad.")
    blimp: str | None = setting(None, "Folder of BLiMP's files, if runs are to be scored on it.")
    blimp_options: str = setting("", "More options of training.evaluate_blimp.")
    given: dict = dataclasses.field(default_factory=dict, repr=False, compare=False)

    fitted = staticmethod(pretrain_settings.Settings.fitted)

    def problems(self):
        """Returns a sentence for each mistake."""
        return checks.find_problems(self, OWN_CHOICE)

    def position_words(self):
        """Returns the texts of `--positions`, without commas."""
        return [text for word in self.positions for text in word.split(",") if text]

    @functools.cached_property
    def variants(self):
        """The `Variant` of each method, in the order of `--positions`; not with `report_only`."""
        return [parse(text) for text in checks.spelled_out(self.position_words())]

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
            call = max(self.steps_per_call, 1)
            values["valid_every"] = max(round(self.steps / CURVE_POINTS / call), 1) * call
        if variant.file is None:
            values["position"] = variant.position
        return pretrain_settings.Settings(
            **values,
            position_file=variant.file,
            position_options=json.dumps(variant.options, sort_keys=True),
            seed=seed,
            out=str(out),
        )


def command_words(settings):
    """Returns the command line of `training.pretrain` that `settings` come from, as short as it is.

    Args:
        settings: a `Settings` of `training.pretrain`.

    Returns:
        List of strings.
    """
    words = []
    for name, field in _PRETRAIN.items():
        value = getattr(settings, name)
        # a warm-up that is not given would follow the steps
        is_default = value == field.default and name != "warmup_steps"
        if "help" not in field.metadata or is_default:
            continue
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", "none" if value is None else str(value)]
    return words
