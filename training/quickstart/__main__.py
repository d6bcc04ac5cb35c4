"""TUPE beside BERT's absolute positions, from raw text to an exported model, in minutes.

    python -m training.quickstart
    python -m training.quickstart --minutes 20 --out saved_models/longer
    python -m training.quickstart --corpus my.txt --positions absolute,tupe_a,tupe_r

Reads real text (the docstrings of the installed packages, unless told otherwise), trains a
vocabulary, pre-trains one encoder per positional method on the same data, masks and steps,
fine-tunes each on a task that needs word order, exports the best as a SavedModel, loads that in
another process and asks it questions. Writes everything to `--out`.
"""

import sys
import time

from training.command.settings import parse
from training.command.shell import WRONG, command_of, sentences
from training.command.stages import Stages
from training.machine.slowness import slowness
from training.quickstart import plan
from training.quickstart.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    started = time.monotonic()
    settings = parse(Settings, arguments, __doc__, "quickstart")
    slow = slowness()
    problem = plan.too_short(settings, slow)
    if problem:
        print(f"quickstart: {problem}", file=sys.stderr)
        sys.exit(WRONG)
    print(plan.in_words(settings), flush=True)
    spent = time.monotonic() - started
    errors = sentences("quickstart", "Nothing was written.")
    with errors, Stages("quickstart", spent=spent) as stages:
        plan.expect_all(stages, settings, slow)
        stages.begin(plan.STARTING)
        from training.quickstart.work import next_steps, report, train_and_publish

        command = command_of("quickstart", arguments)
        results, data, best = train_and_publish(settings, settings.names(), command, stages)
    report(results, data)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    print(f"\nexported {best.position} to {settings.out}, in {minutes} min {seconds} s in all")
    print(next_steps(settings, data))


if __name__ == "__main__":
    main()
