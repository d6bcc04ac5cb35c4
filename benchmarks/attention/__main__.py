"""Time and memory of one attention layer with each position method, from short to long texts.

    python -m benchmarks.attention
    python -m benchmarks.attention --heads 12 --lengths 2048,16384 --positions tupe_r
    python -m benchmarks.attention --lengths 512 --positions tupe_r,shaw:k=64,qkr_4:k=64

Forward and backward pass of the attention layer of an encoder and of what makes its position bias,
called as the encoder calls them, without embeddings, normalization and feed-forward network. Beside
it stands what its four projections alone cost, so that the core (scores, dropout, product with the
values) is the difference. The growth of memory is measured in a process of its own, which ends
where it would grow beyond `--limit-mib`: a row that says so. Up to 2,048 tokens times are of
interleaved rounds of all methods that fit; beyond, of those processes. Writes `attention.json` and
`attention.md` to `--out`, and says first about how long it will take: two to three hours on two
cores, of which most is spent on 12 heads and 16,384 tokens. With `KERAS_BACKEND=jax` it runs on
JAX.
"""

import sys

from benchmarks.attention.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "attention")
    from benchmarks.attention import layer
    from benchmarks.attention.collect import collect
    from benchmarks.attention.report import definitions, markdown
    from benchmarks.harness import provenance, report

    with sentences("attention", "Nothing was written."):
        facts = {
            **provenance.origin("attention", arguments),
            "settings": {
                "positions": [variant.label for variant in settings.variants()],
                "heads": settings.heads,
                "head_dim": settings.head_dim,
                "lengths": settings.lengths,
                "tokens": settings.tokens,
                "precision": settings.precision,
                "xla": settings.xla,
                "rounds": settings.rounds,
                "limit_mib": settings.limit_mib,
                "step_seconds": settings.step_seconds,
                "dropout": layer.DROPOUT,
            },
            "definitions": definitions(settings),
        }
        record = {**facts, **collect(settings)}
    report.write(settings.out, "attention", record, markdown(record))
    if record["problems"]:
        sys.exit("attention: not everything could be measured; see the lines 'Failed' above")


if __name__ == "__main__":
    main()
