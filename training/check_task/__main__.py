"""Checks every promise of a task, in a Python file anywhere.

    keras-tupe check-task my_task.py

A small model of the task is made on an encoder, and its head asked for what it answers in the
graph, in training, behind padding, in half precision, and in a graph of every length; it is trained
on the task's own examples, scored, asked, saved and loaded. This is what the tests ask of the
package's own tasks. It takes some seconds, and ends with 0 if all promises are kept, else 1.
"""

import sys

from training.check_task.settings import Settings
from training.command.settings import parse
from training.command.shell import FAILED, sentences
from training.command.tables import table


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "check_task")
    with sentences("check_task", "Nothing was written."):
        from keras_tupe import tasks
        from training.check_task import suite

        name = settings.task
        name = tasks.load_file(name) if name.endswith(".py") else name
        outcomes = suite.outcomes(tasks.get(name), settings.only)
    rows = [[one.promise, one.result, f"{one.seconds:.1f}"] for one in outcomes]
    print(table(["promise", "result", "seconds"], rows))
    for one in outcomes:
        if one.reason:
            print(f"\n{one.promise}: {one.reason}")
    broken = sum(one.result == suite.BROKEN for one in outcomes)
    kept = sum(one.result == suite.KEPT for one in outcomes)
    print(f"\n{name} keeps {kept} of {kept + broken} promises.")
    if broken:
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
