"""Time and memory of every position method beside `absolute`, on the same encoder.

    python -m benchmarks.methods
    python -m benchmarks.methods --positions tupe_r,qkr_4 --lengths 512 --no-peer

Times train steps and inference in interleaved rounds and reports ratios to `absolute`, measures
the peak memory of a train step, each method in a process of its own, and does the same for BERT of
Hugging Face transformers and its relative positions (torch, CPU; in a Python environment of its
own, made once). Writes `methods.json` and `methods.md` to `--out`. With `KERAS_BACKEND=jax` it runs
on what JAX finds, a GPU if there is one. All of it takes over an hour on two cores.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import shlex
import sys

from benchmarks import _cases, _report, _settings
from benchmarks._collect import collect, definitions
from benchmarks._machine import machine, source
from keras_tupe import SIZES


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    settings = _settings.parse(arguments, description=__doc__)
    facts = {
        "command": shlex.join(["python", "-m", "benchmarks.methods", *arguments]),
        "source": source(),
        "machine": machine(),
        "settings": {
            "positions": settings.positions,
            "lengths": settings.lengths,
            "rounds": settings.rounds,
            "tokens": settings.tokens,
            "size": settings.size,
            **dataclasses.asdict(SIZES[settings.size]),
            "vocabulary_size": _cases.VOCABULARY_SIZE,
            "learning_rate": _cases.LEARNING_RATE,
        },
        "definitions": definitions(settings),
    }
    try:
        found = collect(settings)
    except KeyboardInterrupt:
        sys.exit("methods: stopped; nothing was written")
    record = {**facts, **found}
    _report.write(settings.out, record)
    print(_report.markdown(record))
    print(f"written: {', '.join(str(settings.out / name) for name in _settings.FILES)}")
    if found["problems"]:
        sys.exit("methods: not everything could be measured; see the lines 'Failed' above")


if __name__ == "__main__":
    main()
