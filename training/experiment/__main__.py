"""The papers' experiments, each by its name: planned, run and reported beside the paper.

    python -m training.experiment --list
    python -m training.experiment tupe-table1 --scale laptop --plan
    python -m training.experiment tupe-table1 --scale laptop --data rows --glue glue --out table1

Scales: `laptop` is an hour or two on two cores, `gpu-hour` and `gpu-day` are that on one large
GPU, `paper` is what the paper did. The rows of text must have the length of the scale (128 tokens
for a laptop); `--plan` tells what will run, its FLOPs and the hours on the device that is found.

An experiment runs `training.study`, `training.convert` and `training.finetune` in OUT; the
same command goes on where it was stopped. At the end: `report.md`, `report.json` and `report.png`,
with the paper's numbers and ours in tables of their own, and what differs between them.
"""

from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.experiment.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "experiment")
    with sentences("experiment", "The same command goes on from here."):
        from training.experiment.work import experiment, list_text

        if settings.list:
            print(list_text())
        else:
            experiment(settings, command_of("experiment", arguments))


if __name__ == "__main__":
    main()
