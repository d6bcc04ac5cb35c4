"""Measures what presets can do without being trained for it, and compares them.

    keras-tupe evaluate blimp runs/tupe_r/preset --data blimp --out results/blimp
    keras-tupe evaluate sts presets/embedder --data glue --out results/sts
    keras-tupe evaluate perplexity runs/rope/preset runs/t5/preset --data rows --out results/two

The folder gets a folder for each preset, `study.json`, `study.md` and a picture. Of several presets
it is told how far each is from the first, with 95 % intervals by a bootstrap over the same rows. A
task's options and what it writes are in `keras-tupe evaluate TASK --help`.
"""

import pathlib

from training.command.shell import chosen, command_of
from training.study.command import answer


def main(arguments=None):
    """Runs the command line."""
    name, module, words = chosen("evaluate", pathlib.Path(__file__).parent, __doc__, arguments)
    command = command_of("evaluate", [name, *words])
    answer(module.STUDY, f"evaluate {name}", words, command)


if __name__ == "__main__":
    main()
