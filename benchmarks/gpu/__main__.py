"""Train steps on an accelerator, on several systems: time, memory, and FLOP utilisation.

    python -m benchmarks.gpu
    python -m benchmarks.gpu --small
    python -m benchmarks.gpu --systems jax --lengths 512 --tokens 65536 --peak-flops 989e12

The systems are this package on JAX and on TensorFlow (`MirroredStrategy` and XLA), and the BERT of
transformers on torch; what is not installed is skipped. Each model is trained in a process of its
own, on the first device, which may be a CPU; ours by `keras_tupe.trainer.Trainer.fit`, as in
`benchmarks.training` with logits at the masked tokens only, dropout 0.1, AdamW and clipping.
`--small` tries it all in a minute or two. Model-FLOP utilisation is
`keras_tupe.trainer.step_flops` per second by the peak of the device in bfloat16, of a table or
`--peak-flops`; beside it the share of the largest matrix product's speed, measured in the same run
and precision. Writes `gpu.json` and `gpu.md` to `--out`.
"""

import importlib.util
import os

if importlib.util.find_spec("jax"):  # of this process, which measures nothing
    os.environ.setdefault("KERAS_BACKEND", "jax")

import dataclasses
import sys

from benchmarks.gpu.settings import SMALL, Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "gpu")
    if settings.small:
        settings = dataclasses.replace(settings, **SMALL)
    from benchmarks.gpu.collect import collect
    from benchmarks.gpu.report import markdown
    from benchmarks.harness import provenance, report

    facts = {**provenance.origin("gpu", arguments), "settings": dataclasses.asdict(settings)}
    with sentences("gpu", "Nothing was written."):
        record = {**facts, **collect(settings)}
    report.write(settings.out, "gpu", record, markdown(record))
    if record["problems"]:
        sys.exit("gpu: not everything could be measured; see the lines 'Failed' above")


if __name__ == "__main__":
    main()
