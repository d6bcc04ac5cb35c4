"""Measures how well the similarity of texts' vectors agrees with people's: STS-B, Spearman.

    python -m training.evaluate_sts presets/embedder --data glue --out results/sts
    python -m training.evaluate_sts runs/tupe_r/preset --data glue --pooling mean --out results/sts

Both sentences of each pair become vectors, without any training on the task, and Spearman's
correlation of their cosine with the pairs' scores is what is reported. PRESET is an embedder
(`keras-tupe convert` of a sentence-transformers folder), or any other preset with a tokenizer,
whose hidden states are then pooled. Beside it stands a baseline that knows neither order nor
context: the mean of the model's own word vectors, the rows of its token embedding, special tokens
left out. `--data` holds GLUE's STS-B, of which the dev set is used (1,500 pairs).

The folder gets `results.json` (correlations from -1 to 1 with 95 % intervals, by a bootstrap over
pairs, and the difference from the baseline), `pairs.csv` and `sts.png`.
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.evaluate_sts.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "evaluate_sts")
    with sentences("evaluate_sts", "Nothing was written."):
        from training.evaluate_sts.work import PAIRS, PICTURE, RESULTS, measure

        print(measure(settings, command_of("evaluate_sts", arguments)))
    print("\n" + names_of(settings.out, RESULTS, PAIRS, PICTURE))


if __name__ == "__main__":
    main()
