"""Fine-tunes a preset on SQuAD v1.1 and scores its answers by the official rules.

    python -m training.finetune_squad runs/tupe_r/preset --train train-v1.1.json \\
        --dev dev-v1.1.json --out runs/tupe_r/squad
    python -m training.finetune_squad PRESET --train T --dev D --length 640 --seeds 3 --out longer

The defaults: rows of 512 tokens, as Huang et al. 2020 have them; 3 epochs at 3e-5 in batches of 32,
which they say of GLUE only; the rest as in BERT's code. The report says what differs. A preset for
shorter rows is made longer first, see --extend.

Every seed is a folder, seed-K, that is complete or not there: settings, log, scores,
`predictions.json` (id -> answer, as the official scorer reads it) and `nbest.json`. The same
command goes on where it was stopped. At the end: `results.json`, `results.md` and `squad.png`, with
scores by position of the answer and by length of the passage.

A model as small as a laptop trains wants a higher rate (3e-4).
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.finetune_squad.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "finetune_squad")
    with sentences("finetune_squad", "The same command goes on from the last complete run."):
        from training.finetune_squad.work import finetune

        text = finetune(settings, command_of("finetune_squad", arguments))
    print(text)
    print(names_of(settings.out, "results.json", "results.md", "squad.png"))


if __name__ == "__main__":
    main()
