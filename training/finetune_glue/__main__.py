"""Fine-tunes a preset on GLUE by a paper's protocol, over a grid of learning rates and seeds.

    python -m training.finetune_glue runs/tupe_r/preset --data glue --out runs/tupe_r/glue
    python -m training.finetune_glue PRESET --data glue --tasks cola rte --seeds 3 --epochs 3 \\
        --learning-rates 1e-4 3e-4 --out small

Protocols: `tupe` (Ke et al. 2021: four rates, five seeds, the median of the seeds, then the best
rate; Matthews for CoLA, Pearson for STS-B, accuracy) and `huang` (Huang et al. 2020: 3 epochs at
3e-5; F1 for QQP and MRPC). What is changed in them is said in the table.

Every run is a folder, TASK/lr-RATE/seed-K, that is complete or not there: settings, log, scores
and predictions of the dev set. The same command goes on where it was stopped. At the end:
`results.json`, `results.md`, `grid.png`, and with --submission the files for GLUE's server, for
which the median run of the best rate is trained once more (no weights are kept).

A model as small as a laptop trains wants higher rates than the papers' (1e-4 to 1e-3).
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.finetune_glue.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "finetune_glue")
    with sentences("finetune_glue", "The same command goes on from the last complete run."):
        from training.finetune_glue.work import finetune

        text = finetune(settings, command_of("finetune_glue", arguments))
    print(text)
    print(names_of(settings.out, "results.json", "results.md", "grid.png"))


if __name__ == "__main__":
    main()
