"""An experiment of a paper: its commands as runs, each in a process of its own, and the report."""

import functools
import pathlib

from training.command.processes import Stop
from training.command.settings import read
from training.convert.settings import Settings as ConvertSettings
from training.finetune.tasks.squad import Settings as SquadSettings
from training.machine.cost import find_device
from training.studies.ablation.settings import Settings as AblationSettings
from training.studies.ablation.tasks import Task
from training.studies.ablation.work import Ablating
from training.studies.papers import report
from training.studies.papers.definition import find
from training.studies.papers.plan import make_plan, nominal_device, plan_text
from training.studies.papers.results import collect_results
from training.study.folder import digest_of
from training.study.study import Report, Run, RunError, Work


class Papers(Work):
    """An experiment; see `Work`."""

    def __init__(self, settings):
        super().__init__(settings)
        self._definition = find(settings.name)
        self._plan = make_plan(self._definition, settings, nominal_device(settings.scale))

    def plan(self, results):
        """Yields a run for each command, which comes after those before it."""
        shared, before = self.settings.identity(), ()
        for command in self._plan.commands:
            do = functools.partial(self._do, command)
            own = {} if self.settings.plan else _identity(command)
            run = Run(
                command.folder, do, {}, shared, own, command.module, before[:1],
                work=max(sum(cost.seconds for cost in command.parts.values()), 1.0),
                resumes=command.module != "training.convert",
            )  # fmt: skip
            yield run
            before = before or (run,)

    def _do(self, command, folder):
        out = str(pathlib.Path(self.settings.out, command.folder))
        words = [
            str(folder) + word[len(out) :] if (word + "/").startswith(f"{out}/") else word
            for word in command.words
        ]
        with Stop() as stop:
            status = stop.run(command.module, words)
            if stop.received:
                raise KeyboardInterrupt
        if status != 0:
            raise RunError(f"Received: status {status} of `{command}`")
        return {}

    def estimate(self, runs, todo, results):
        """Returns the plan: what it costs on the device that is found, and its commands."""
        settings, scale = self.settings, self._definition.scales[self.settings.scale]
        device, _ = find_device(
            settings.precision or scale.precision, settings.peak_flops, settings.utilisation
        )
        return plan_text(make_plan(self._definition, settings, device), device)

    def report(self, results):
        """Returns the paper's numbers and ours."""
        if results.unfinished:
            return Report(f"{self._definition.name}: not finished", [self._definition.question])
        found = collect_results(self._plan, pathlib.Path(self.settings.out))
        return report.report(self._plan, found, self.settings.overrides())


def _identity(command):
    """Returns what the numbers of a command depend on: those of its own runs, by value."""
    if command.module == "training.study":
        settings, _ = read(AblationSettings, command.words[1:])
        return {"runs": {run.name: digest_of(run) for run in Ablating(settings).plan(None)}}
    if command.module == "training.finetune":
        settings, _ = read(SquadSettings, command.words[1:])
        return Task("squad", settings).identity()
    settings, _ = read(ConvertSettings, command.words)
    return {name: getattr(settings, name) for name in ("graft", "graft_options", "graft_length")}
