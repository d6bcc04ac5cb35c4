"""Asks a language model which sentence of each minimal pair of BLiMP is grammatical.

    python -m training.evaluate_blimp runs/tupe_r/preset --data blimp --out results/blimp

Scores both sentences of a pair: by a masked language model's pseudo-log-likelihood, for which each
token is masked in turn and predicted, by a causal one's log-likelihood, or by how likely each token
is the sentence's own to a discriminator of replaced tokens. The pair is right if the good sentence
has the higher score; a tie is wrong, and a blind choice gives 50 %. `--data` holds BLiMP's files
(67 paradigms of 1,000 pairs), or some of them. A `tiny` masked model takes 7 minutes of one core
for all of them. BLiMP has seven pairs of twice the same sentence, so nobody gets more than 66,993
right.

The folder gets `results.json` (shares from 0 to 1, with 95 % intervals), `blimp.png`, and in
`paradigms/` the scores of every pair. The same command goes on where it was stopped.
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.evaluate_blimp.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "evaluate_blimp")
    with sentences("evaluate_blimp", "The same command goes on where it was."):
        from training.evaluate_blimp.work import PICTURE, RESULTS, score

        print(score(settings, command_of("evaluate_blimp", arguments)))
    print("\n" + names_of(settings.out, RESULTS, PICTURE))


if __name__ == "__main__":
    main()
