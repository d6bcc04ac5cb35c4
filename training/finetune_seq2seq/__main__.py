"""Trains a model that writes a text to a text, on pairs of them, and scores what it writes.

    keras-tupe finetune_seq2seq --train train.tsv --valid valid.tsv --size tiny --out runs/pairs
    keras-tupe finetune_seq2seq runs/pairs/seed-0/preset --train more.tsv --valid valid.tsv \\
        --learning-rate 1e-4 --epochs 3 --out runs/further
    python -m training.finetune_seq2seq --config transformer-base --train train.tsv \\
        --valid valid.tsv --test test.tsv --out runs/translation

A file has a pair per line, source and target, with a tab between them, in UTF-8 and without a
header. With PRESET its model is trained further. Without it a new one is made, with a WordPiece
vocabulary of both columns of --train.

What is written to the sources of --valid and --test is compared with their targets: exact match,
chrF and BLEU, by sacrebleu. Every seed is a folder, seed-K: logs, `metrics.json`, `preset/`,
`predictions.tsv` (source, target, prediction) and that of the test, `predictions-test.tsv`. At the
end: `results.json`, `results.md` and `curves.png`. The same command goes on where it was stopped,
from the last checkpoint.
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.finetune_seq2seq.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "finetune_seq2seq")
    with sentences("finetune_seq2seq", "The same command goes on from the last checkpoint."):
        from training.finetune_seq2seq.work import finetune

        text = finetune(settings, command_of("finetune_seq2seq", arguments))
    print(text)
    print(names_of(settings.out, "results.json", "results.md", "curves.png"))


if __name__ == "__main__":
    main()
