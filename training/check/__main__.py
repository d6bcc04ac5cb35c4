"""Checks every promise of a positional method or of a task, in a Python file anywhere.

    keras-tupe check my_method.py
    keras-tupe check my_task.py --only padding

A method: its layers are compared with the oracle in float64, at 1e-12 and with scrambled weights,
under every option and in whole encoders; the oracle must not lean on the layers; then padding,
order, length, precision, gradients, training, files and exports. It takes about a minute on two
cores. A task: a small model of it is asked in the graph, in training, behind padding, in half
precision and in a graph of every length; it is trained on the task's own examples, scored, asked,
saved and loaded, in some seconds. This is what the tests ask of the package's own. It ends with 0
if all promises are kept, else 1.
"""

import ast
import dataclasses
import os
import pathlib
import sys

os.environ.setdefault("JAX_ENABLE_X64", "1")  # else JAX turns float64 into float32

from training.command.report import table
from training.command.settings import nearest, parse, setting
from training.command.shell import FAILED, sentences
from training.command.without_keras import method_names, task_names

_KINDS = {"METHOD": method_names, "TASK": task_names}  # what a file sets -> those of the package


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `keras-tupe check`."""

    file: str | None = setting(
        None,
        "Python file of a positional method or a task, or the name of one of the package's.",
        positional=True,
    )
    only: str = setting("", "Check only the promises whose name holds this text.")

    @property
    def kind(self):
        """What the file sets, `METHOD` or `TASK`, or what the name is of; `None` if neither."""
        if self.file.endswith(".py"):
            try:
                body = ast.parse(pathlib.Path(self.file).read_text(encoding="utf-8")).body
            except (SyntaxError, ValueError):
                return "METHOD"  # whose loading says what is wrong
            targets = [x for node in body if isinstance(node, ast.Assign) for x in node.targets]
            found = {target.id for target in targets if isinstance(target, ast.Name)}
        else:
            found = {kind for kind, names in _KINDS.items() if self.file in names()}
        return next(iter(sorted(found & _KINDS.keys())), None)

    def problems(self):
        """Returns a sentence for each mistake."""
        if self.file is None:
            return ["FILE must be given: a Python file, or a name. Received: nothing"]
        is_file = self.file.endswith(".py")
        if is_file and not pathlib.Path(self.file).is_file():
            return [f"FILE must be an existing Python file. Received: {self.file!r}"]
        if self.kind is not None:
            return []
        if is_file:
            return [
                "FILE must set METHOD to a PositionMethod, or TASK to the class of a task. "
                f"Received: {self.file!r}, which sets neither"
            ]
        known = [name for names in _KINDS.values() for name in names()]
        return [
            "FILE must be a Python file, a positional method or a task; the nearest is "
            f"{nearest(self.file, known)!r}, and `keras-tupe list methods` and `list tasks` have "
            f"all. Received: {self.file!r}"
        ]


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "check")
    with sentences("check", "Nothing was written."):
        name, outcomes = _outcomes(settings)
    cells = [[x.promise, x.result, str(x.count or ""), f"{x.seconds:.1f}"] for x in outcomes]
    print(table(["promise", "result", "cases", "seconds"], cells))
    broken = [one for one in outcomes if one.result == "BROKEN"]
    for one in broken:
        print(f"\n{one.promise}: {one.reason}")
    left_out = [f"{one.promise} ({one.reason})" for one in outcomes if not one.count]
    if left_out:
        print("\nLeft out: " + "; ".join(left_out) + ".")
    kept = sum(one.result == "kept" for one in outcomes)
    seconds = sum(one.seconds for one in outcomes)
    print(f"\n{name} keeps {kept} of {kept + len(broken)} promises ({seconds:.0f} s).")
    if broken:
        sys.exit(FAILED)


def _outcomes(settings):
    """Returns the name of what is checked, and what comes of each check."""
    from keras_tupe import positions, tasks
    from training.check import task
    from training.check.method import suite

    registry, checks_of = {"METHOD": (positions, suite), "TASK": (tasks, task)}[settings.kind]
    is_file = settings.file.endswith(".py")
    name = registry.load_file(settings.file) if is_file else settings.file
    checks, outcomes = checks_of.checks(name), []
    chosen = [check for check in checks if settings.only in check.promise]
    if not chosen:
        raise ValueError(
            "--only must be a part of the name of a promise. Expected a part of one of "
            f"{[check.promise for check in checks]}. Received: {settings.only!r}"
        )
    for check in chosen:
        outcomes.append(check.outcome())
        if sys.stderr.isatty():
            print(f"\r{len(outcomes)} checks", end="", file=sys.stderr, flush=True)
    return name, outcomes


if __name__ == "__main__":
    main()
