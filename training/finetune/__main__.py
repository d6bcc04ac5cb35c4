"""Fine-tunes a preset on a task, and scores it.

    keras-tupe finetune glue runs/tupe_r/preset --data glue --out runs/tupe_r/glue
    keras-tupe finetune squad runs/tupe_r/preset --train train-v1.1.json --valid dev-v1.1.json \\
        --out runs/tupe_r/squad
    keras-tupe finetune seq2seq --train train.tsv --valid valid.tsv --out runs/pairs

Every run is a folder in --out that is complete or not there. The same command goes on where it was
stopped. At the end: `study.json`, `study.md` and a picture. A task's options and what it writes
are in `keras-tupe finetune TASK --help`.
"""

import pathlib

from training.command.shell import chosen, command_of
from training.study.command import answer


def main(arguments=None):
    """Runs the command line."""
    name, module, words = chosen("finetune", pathlib.Path(__file__).parent, __doc__, arguments)
    command = command_of("finetune", [name, *words])
    answer(module.STUDY, f"finetune {name}", words, command)


if __name__ == "__main__":
    main()
