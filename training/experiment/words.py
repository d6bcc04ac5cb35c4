"""What is printed before an experiment runs: its plan, or the list of all experiments."""

from training.command.tables import table
from training.experiment.definition import find, names
from training.experiment.plan import make_plan
from training.experiment.schema import SCALES
from training.experiment.settings import Settings
from training.machine.cost import H200, TWO_CORES


def plan_text(plan, device):
    """Returns a plan in words and tables.

    Args:
        plan: a `Plan`.
        device: the `Device` that it was made for.
    """
    experiment, scale = plan.experiment, plan.scale
    rows = [[name, *_cells(cost)] for name, cost in plan.parts().items()]
    if len(rows) > 1:
        rows.append(["all", *_cells(plan.cost)])
    basis = (
        f"Hours: on {device.name}, at {device.utilisation:.0%} of {device.peak_flops / 1e12:.3g} "
        f"TFLOP/s, at least {1000 * device.step_seconds:g} ms a step, and "
        f"{device.start_seconds:g} s to start a run of fine-tuning, twice that of pre-training: an "
        "estimate, with nothing else on the device. FLOPs: of the model, evaluation included."
    )
    parts = [
        f"{experiment.name}, scale {scale.name}: {experiment.question}",
        table(["work", "runs", "tokens", "FLOPs", "hours"], rows),
        basis,
    ]
    if plan.facts is not None and plan.facts["rows"]:
        seen = scale.pretraining()["steps"] * scale.pretraining()["batch_size"]
        parts.append(
            f"Each pre-training sees the {plan.facts['rows']:,} rows "
            f"{seen / plan.facts['rows']:.3g} times."
        )
    parts.append("\n".join(f"{number}. {one}" for number, one in enumerate(plan.commands, 1)))
    return "\n\n".join(parts)


def list_text():
    """Returns the experiments that come with the package, with what they ask and take."""
    rows, questions = [], []
    for name in names():
        experiment = find(name)
        rows.append([name, *(_hours(experiment, scale) for scale in SCALES)])
        paper = f"{experiment.source['paper']} {experiment.source['place']}."
        questions.append(f"{name}: {experiment.question}\n    {paper}")
    notes = (
        f"Hours of `laptop` on {TWO_CORES.name}; of the others on {H200.name}, at "
        f"{H200.utilisation:.0%} of its peak. --plan tells those of your device."
    )
    hours = table(["experiment", *(f"{scale}, hours" for scale in SCALES)], rows)
    return "\n\n".join(["\n".join(questions), hours, notes])


def nominal_device(scale):
    """Returns the `Device` that a scale is made for."""
    return TWO_CORES if scale == "laptop" else H200


def _hours(experiment, scale):
    if scale not in experiment.scales:
        return "-"
    settings = Settings(name=experiment.name, scale=scale)
    return f"{_short(make_plan(experiment, settings, nominal_device(scale)).cost.seconds / 3600)}"


def _cells(cost):
    hours = _short(cost.seconds / 3600)
    return [f"{cost.runs:,}", f"{cost.tokens:.3g}", f"{cost.flops:.3g}", hours]


def _short(hours):
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
