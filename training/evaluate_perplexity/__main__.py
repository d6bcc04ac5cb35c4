"""Measures how well a causal language model predicts text, and how that depends on the position.

    python -m training.evaluate_perplexity runs/rope/preset --data long_rows --out results/rope

`--data` is what `keras-tupe prepare` made with the preset's vocabulary; its rows may be longer than
those that the model was trained on, to see whether it can use, or bears, more context than it has
ever seen. A method with a table of positions reads no more of each row than it has positions for.

The folder gets `results.json` (losses in nats; perplexity per token, and per character of text,
which does not depend on the vocabulary; the loss in bins of positions) and `positions.png`.
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.evaluate_perplexity.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "evaluate_perplexity")
    with sentences("evaluate_perplexity", "Nothing was written."):
        from training.evaluate_perplexity.work import PICTURE, RESULTS, measure

        print(measure(settings, command_of("evaluate_perplexity", arguments)))
    print("\n" + names_of(settings.out, RESULTS, PICTURE))


if __name__ == "__main__":
    main()
