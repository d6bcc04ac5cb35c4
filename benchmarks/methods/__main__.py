"""Time and memory of every position method beside `absolute`, on the same encoder.

    python -m benchmarks.methods
    python -m benchmarks.methods --positions tupe_r,qkr_4 --lengths 512 --no-peer

Times train steps and inference in interleaved rounds and reports ratios to `absolute`, measures
the peak memory of a train step, each method in a process of its own, and does the same for BERT of
Hugging Face transformers and its relative positions (torch, CPU; in a Python environment of its
own, made once). Writes `methods.json` and `methods.md` to `--out`. With `KERAS_BACKEND=jax` it runs
on what JAX finds, a GPU if there is one. All of it takes over an hour on two cores.
"""

import dataclasses
import sys

from benchmarks.methods.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "methods")
    from benchmarks.harness import provenance, report
    from benchmarks.methods import cases
    from benchmarks.methods.collect import collect
    from benchmarks.methods.report import definitions, markdown
    from keras_tupe import SIZES

    facts = {
        **provenance.origin("methods", arguments),
        "settings": {
            "positions": settings.names,
            "lengths": settings.lengths,
            "rounds": settings.rounds,
            "tokens": settings.tokens,
            "size": settings.size,
            **dataclasses.asdict(SIZES[settings.size]),
            "vocabulary_size": cases.VOCABULARY_SIZE,
            "learning_rate": cases.LEARNING_RATE,
        },
        "definitions": definitions(settings),
    }
    with sentences("methods", "Nothing was written."):
        record = {**facts, **collect(settings)}
    report.write(settings.out, "methods", record, markdown(record))
    if record["problems"]:
        sys.exit("methods: not everything could be measured; see the lines 'Failed' above")


if __name__ == "__main__":
    main()
