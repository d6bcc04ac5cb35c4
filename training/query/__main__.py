"""Asks an exported model; needs TensorFlow alone, and keras_tupe for an export without text/.

    python -m training.query saved_models/quickstart
    python -m training.query saved_models/quickstart --fill "returns a [MASK] of strings"
    python -m training.query saved_models/novels --nearest "He was glad to see her."
    python -m training.query saved_models/writer --prompt "He was glad"

Checks the export against the outputs stored beside it, then answers the questions: fills the
blank with the five likeliest pieces, ranks a small set of sentences by the cosine of their
vectors with the question's. Its own questions are in the manner, of a few, that the vocabulary
writes in the fewest pieces. A causal language model goes on with prompts instead, and a model of
pairs writes their targets. A text that is longer than what the model reads is cut, and told; a
question without a blank that the model reads is a mistake. The strings of an export without text/
are answered by its preset/, if it has one, which keras_tupe loads.
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
