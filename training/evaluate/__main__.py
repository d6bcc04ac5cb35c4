"""Measures what presets can do without being trained for it, and compares them.

    keras-tupe evaluate blimp runs/tupe_r/preset --data blimp --out results/blimp
    keras-tupe evaluate sts presets/embedder --data glue --out results/sts
    keras-tupe evaluate perplexity runs/rope/preset runs/t5/preset --data rows --out results/two

Of several presets the folder gets a folder each, `TASK/NAME`, one picture, and how far each is from
the first, with 95 % intervals by a bootstrap over the same rows. A task's options and what it
writes are in `keras-tupe evaluate TASK --help`.
"""

import pathlib

from training.command.report import names_of
from training.command.settings import parse
from training.command.shell import chosen, command_of, sentences
from training.evaluate.task import RESULTS, evaluate


def main(arguments=None):
    """Runs the command line."""
    name, module, words = chosen("evaluate", pathlib.Path(__file__).parent, __doc__, arguments)
    task, title = module.TASK, f"evaluate {name}"
    settings = parse(module.Settings, words, module.__doc__, title)
    with sentences(title, task.stopped):
        print(evaluate(task, name, settings, command_of("evaluate", [name, *words])))
    print("\n" + names_of(settings.out, RESULTS, task.picture, *task.makes))


if __name__ == "__main__":
    main()
