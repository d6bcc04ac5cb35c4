"""Fine-tunes a preset on a task, and scores it.

    keras-tupe finetune glue runs/tupe_r/preset --data glue --out runs/tupe_r/glue
    keras-tupe finetune squad runs/tupe_r/preset --train train-v1.1.json --dev dev-v1.1.json \\
        --out runs/tupe_r/squad
    keras-tupe finetune seq2seq --train train.tsv --valid valid.tsv --out runs/pairs

Every run is a folder in --out that is complete or not there. The same command goes on where it was
stopped. At the end: `results.json`, `results.md` and a picture. A task's options and what it writes
are in `keras-tupe finetune TASK --help`.
"""

import pathlib

from training.command.report import names_of
from training.command.settings import parse
from training.command.shell import chosen, command_of, sentences


def main(arguments=None):
    """Runs the command line."""
    name, module, words = chosen("finetune", pathlib.Path(__file__).parent, __doc__, arguments)
    title = f"finetune {name}"
    settings = parse(module.Settings, words, module.__doc__, title)
    with sentences(title, "The same command goes on from what is there."):
        from training.finetune.task import carry_out

        task = module.task(settings)
        print(carry_out(title, task, command_of("finetune", [name, *words])))
    print(names_of(settings.out, "results.json", "results.md", task.picture))


if __name__ == "__main__":
    main()
