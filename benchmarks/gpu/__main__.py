"""Train steps on an accelerator, through the JAX backend: time, memory, and FLOP utilisation.

    KERAS_BACKEND=jax python -m benchmarks.gpu
    KERAS_BACKEND=jax python -m benchmarks.gpu --lengths 512 --tokens 65536 --peak-flops 989e12

Needs JAX and no TensorFlow. Each model is trained by `keras_tupe.trainer.Trainer.fit` in a process
of its own, on the first device that JAX finds, which may be a CPU; as in `benchmarks.training` with
logits at the masked tokens only, dropout 0.1, AdamW and clipping. Model-FLOP utilisation is
`keras_tupe.trainer.step_flops` per second by the peak of the device in bfloat16, of a table or
`--peak-flops`; beside it the share of the largest matrix product's speed, measured in the same run
and precision. Writes `gpu.json` and `gpu.md` to `--out`.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import dataclasses
import importlib.util
import sys

from benchmarks.gpu.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "gpu")
    _check_backend()  # what follows imports Keras, which fails without its backend
    from benchmarks.gpu.collect import collect
    from benchmarks.gpu.report import markdown
    from benchmarks.harness import provenance, report

    facts = {**provenance.origin("gpu", arguments), "settings": dataclasses.asdict(settings)}
    with sentences("gpu", "Nothing was written."):
        record = {**facts, **collect(settings)}
    report.write(settings.out, "gpu", record, markdown(record))
    if record["problems"]:
        sys.exit("gpu: not everything could be measured; see the lines 'Failed' above")


def _check_backend():
    if os.environ["KERAS_BACKEND"] != "jax":
        sys.exit(
            "gpu: this benchmark runs on the JAX backend. Run it with KERAS_BACKEND=jax. "
            f"Received: KERAS_BACKEND={os.environ['KERAS_BACKEND']!r}"
        )
    if importlib.util.find_spec("jax") is None:
        sys.exit(
            "gpu: JAX is not installed here. Install it as https://docs.jax.dev says for the "
            "device, for example with `pip install jax[cuda12]`, next to this package."
        )


if __name__ == "__main__":
    main()
