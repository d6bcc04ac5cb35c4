"""Asks an exported model; needs TensorFlow alone, not keras_tupe.

    python -m training.query saved_models/quickstart
    python -m training.query saved_models/quickstart --fill "returns a [MASK] of strings"
    python -m training.query saved_models/quickstart --nearest "how to open a file"

Checks the export against the outputs stored beside it, then answers the questions: fills the
blank with the five likeliest pieces, ranks a small set of sentences by the cosine of their
vectors with the question's. A text that is longer than what the model reads is cut, and told; a
question without a blank that the model reads is a mistake.
"""

import sys

from training.command.settings import parse
from training.command.shell import FAILED, WRONG, sentences
from training.query.settings import Settings


def main(arguments=None):
    """Runs the command line; returns the exit code: as of all commands, and 1 for a difference."""
    settings = parse(Settings, arguments, __doc__, "query")
    with sentences("query", "The export is as it was."):
        from training.query.answers import TOLERANCE, ask

        worst, has_all = ask(settings)
    ours = sorted(name for name in sys.modules if name.split(".")[0] == "keras_tupe")
    print(f"modules of keras_tupe in this process: {len(ours)}")
    if worst > TOLERANCE:
        return FAILED
    return 0 if has_all else WRONG


if __name__ == "__main__":
    sys.exit(main())
