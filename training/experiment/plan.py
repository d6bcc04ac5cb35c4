"""What an experiment will run, and what it costs."""

import dataclasses

from training.experiment.commands import Commands, squad_cells
from training.experiment.facts import preset_facts, rows_facts
from training.machine.cost import Cost
from training.pretrain.scaled_steps import scaled_warmup


@dataclasses.dataclass(frozen=True)
class Plan:
    """What an experiment runs.

    Attributes:
        experiment: the `Experiment`.
        scale: the `Scale` that is run, with what the command line changed.
        facts: of the rows, see `rows_facts`; `None` if nothing is pre-trained.
        commands: list of `Command`, in their order.
    """

    experiment: object
    scale: object
    facts: dict | None
    commands: list

    def parts(self):
        """Returns a dictionary: kind of work -> `Cost`."""
        found = {}
        for command in self.commands:
            for name, cost in command.parts.items():
                found[name] = found.get(name, Cost()) + cost
        return found

    @property
    def cost(self):
        """The `Cost` of all."""
        return sum(self.parts().values(), Cost())


def make_plan(experiment, settings, device):
    """Returns the `Plan` of an experiment.

    Where data is not given, the plan is for what the scale assumes.

    Args:
        experiment: an `Experiment`.
        settings: a `Settings` of `training.experiment`, with a scale that the experiment has.
        device: the `Device` that the time is for.
    """
    scale = changed(experiment.scales[settings.scale], settings)
    if scale.pretrain is None:
        size, _ = preset_facts(settings.preset, scale)
        facts = None
    else:
        size, facts = scale.pretraining()["size"], rows_facts(settings.data, scale)
    precision = settings.precision or scale.precision
    make = Commands(scale, settings, precision, size, device)
    first = make.graft() if facts is None else make.ablation(facts)
    return Plan(experiment, scale, facts, [first, *map(make.squad, squad_cells(scale))])


def changed(scale, settings):
    """Returns a scale with what the command line changes in it.

    The warm-up remains the same share of the steps.

    Args:
        scale: a `Scale`.
        settings: a `Settings` of `training.experiment`.
    """
    pretrain, glue = scale.pretrain, scale.glue
    if pretrain is not None and settings.seeds:
        pretrain = {**pretrain, "seeds": settings.seeds}
    if pretrain is not None and settings.steps:
        values, steps = scale.pretraining(), settings.steps
        warmup = scaled_warmup(values["warmup_steps"], values["steps"], steps)
        pretrain = {**pretrain, "steps": steps, "warmup_steps": warmup}
    if glue is not None and settings.tasks:
        glue = {**glue, "tasks": list(settings.tasks)}
    return dataclasses.replace(scale, pretrain=pretrain, glue=glue)
