"""Scores a preset without some of its heads, or with the smallest of its weights at zero.

    python -m training.prune runs/tupe_r/preset --task blimp --data blimp --heads 0.8 --out curve
    python -m training.prune PRESET --task sst2 --data glue --heads 0.25 0.5 --weights 0.3 0.6 \
        --out curve

Heads go in the order of their importance, the mean size of the gradient of a gate on each (Michel
et al. 2019), taken on training rows of the task, the least important ones first and one of each
layer last; beside it as many heads at random, of several seeds. Weights go by their size, kernel by
kernel, or at random. One number of --heads or --weights is the end of a curve in steps of 0.1, more
are the shares themselves.

`--task sst2` scores the dev set of GLUE's SST-2. A preset that is no classifier is fine-tuned
first, and kept as `classifier/preset`; --finetune-epochs trains again after each pruning, with the
zeros kept. `--task blimp` scores the first --limit minimal pairs of each paradigm by a masked
language model's pseudo-log-likelihood; the importance is that of predicting tokens of the others.

The folder gets `results.json`, `results.md`, `pruning.png`: the score over the share, with 95 %
intervals, the latency of the exported encoder, and which of TUPE's five head patterns are left. The
same command goes on where it was stopped. With --keep-presets every pruned model is kept as a
preset, which any other command takes.
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.prune.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "prune")
    with sentences("prune", "The same command goes on from the last complete run."):
        from training.prune.work import MARKDOWN, PICTURE, RESULTS, measure

        print(measure(settings, command_of("prune", arguments)))
    print("\n" + names_of(settings.out, RESULTS, MARKDOWN, PICTURE))


if __name__ == "__main__":
    main()
