"""TUPE beside BERT's absolute positions, from raw text to an exported model, in minutes.

    python -m training.quickstart
    python -m training.quickstart --corpus my.txt --positions absolute,tupe_a,tupe_r

Reads real text (the docstrings of the installed packages, unless told otherwise), trains a
vocabulary, pre-trains one encoder per positional method on the same data, masks and steps,
fine-tunes each on a task that needs word order, exports the best as a SavedModel, loads that in
another process and asks it questions. Writes everything to `--out`.
"""

import sys
import time

from training.command.settings import parse
from training.command.shell import sentences
from training.quickstart.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    started = time.monotonic()
    settings = parse(Settings, arguments, __doc__, "quickstart")
    words = sys.argv[1:] if arguments is None else arguments
    command = " ".join(["python -m training.quickstart", *words])
    with sentences("quickstart", "Nothing was written."):
        from training.quickstart.work import report, train_and_publish

        results, data, best = train_and_publish(settings, settings.names(), command)
    report(results, data)
    print(
        f"\nexported {best.position} to {settings.out} ({time.monotonic() - started:.0f} s in all)"
    )
    print(f'ask it more: python -m training.query {settings.out} --fill "a [MASK] of integers"')


if __name__ == "__main__":
    main()
