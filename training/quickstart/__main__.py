"""TUPE beside BERT's absolute positions, from raw text to an exported model, in minutes.

    python -m training.quickstart
    python -m training.quickstart --minutes 20 --out saved_models/longer
    python -m training.quickstart --corpus my.txt --positions absolute,tupe_a,tupe_r

Reads real text (the docstrings of the installed packages, unless told otherwise), trains a
vocabulary, pre-trains one encoder per positional method on the same data, masks and steps,
fine-tunes each on a task that needs word order, exports the best as a SavedModel, loads that in
another process and asks it questions. Writes everything to `--out`. With `--minutes` the steps are
those that fit, by the time of 30 of them on this machine.
"""

import time

from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.quickstart.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    started = time.monotonic()
    settings = parse(Settings, arguments, __doc__, "quickstart")
    print(settings.in_words(), flush=True)
    with sentences("quickstart", "Nothing was written."):
        from training.quickstart.publish import train_and_publish

        train_and_publish(settings, command_of("quickstart", arguments), started)


if __name__ == "__main__":
    main()
