"""Writes text after prompts, with the preset of a causal language model, or of a model of pairs.

    python -m training.generate runs/rope/preset --prompt "The king" --max-length 64
    python -m training.generate runs/rope/preset --prompt "The king" --sampler top_k --num 3

The preset is that of a run with `--objective causal_lm`; a masked language model cannot write. A
model of pairs, as `finetune seq2seq` trains it and BART is one, takes the prompt as the source and
writes its target.
Texts end with the end token, or when they have --max-length tokens, special ones included and, of a
causal model, those of the prompt. Every prompt gives one block of lines, with --num texts. The same
seed and prompts give the same texts.
"""

from training.command.settings import parse
from training.command.shell import sentences
from training.generate.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "generate")
    with sentences("generate", "Nothing was changed."):
        from training.generate.work import generate

        generate(settings)


if __name__ == "__main__":
    main()
