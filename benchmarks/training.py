"""Train steps of this package beside those of KerasHub and of Hugging Face transformers.

    python -m benchmarks.training
    python -m benchmarks.training --sizes base --lengths 512 --positions absolute,tupe_r
    python -m benchmarks.training --no-peers --precisions float32

Each system is a process of its own; in interleaved rounds each does one train step of masked
language modeling on the same batch: vocabulary logits at the masked tokens only, 15 % of them,
dropout 0.1, AdamW, clipping by the global norm. Systems: `keras_tupe.trainer.Trainer` with each
position method; KerasHub's `BertMaskedLM` in Keras's own `fit`; `BertForMaskedLM` on torch, CPU, in
a Python environment of its own, made once. Reports ratios to the faster peer of the same round,
tokens per second, memory, and the share of the largest matrix product's speed that the model's
FLOPs make (`keras_tupe.trainer.step_flops`: 6 per weight and token, 12 per layer, width, token and
key, 6 per weight of the head and masked token). Writes `training.json` and `training.md` to
`--out`. torch waits by spinning: on a machine that does something else too, compare with
OMP_WAIT_POLICY=PASSIVE, or it is several times slower. Half an hour on two cores.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import shlex
import sys

from benchmarks import _report, _training_batch, _training_report, _training_settings
from benchmarks._machine import machine, source
from benchmarks._training_collect import collect


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    settings = _training_settings.parse(arguments, description=__doc__)
    facts = {
        "command": shlex.join(["python", "-m", "benchmarks.training", *arguments]),
        "source": source(),
        "machine": machine(),
        "settings": {
            "sizes": settings.sizes,
            "positions": settings.positions,
            "precisions": settings.precisions,
            "lengths": settings.lengths,
            "rounds": settings.rounds,
            "tokens": {size: settings.tokens_of(size) for size in settings.sizes},
            "vocabulary_size": {size: settings.vocabulary_of(size) for size in settings.sizes},
            "dropout": _training_batch.DROPOUT,
            "learning_rate": _training_batch.LEARNING_RATE,
        },
        "definitions": definitions(settings),
    }
    try:
        found = collect(settings)
    except KeyboardInterrupt:
        sys.exit("training: stopped; nothing was written")
    record = {**facts, **found}
    page = _training_report.markdown(record)
    texts = (_training_report.json_text(record), page)
    _report.write_files(settings.out, dict(zip(_training_settings.FILES, texts, strict=True)))
    print(page)
    files = (str(settings.out / name) for name in _training_settings.FILES)
    print(f"written: {', '.join(files)}")
    if found["problems"]:
        sys.exit("training: not everything could be measured; see the lines 'Failed' above")


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    return [
        "One train step: forward and backward pass, clipping by the global norm 1, AdamW; dropout "
        f"{_training_batch.DROPOUT} everywhere, {_training_batch.MASKED:.0%} of the tokens "
        "masked, logits at those alone. bfloat16 is `mixed_bfloat16` in Keras and "
        "`torch.autocast` in torch, with weights in float32.",
        "To peer: median over the rounds of the time by that of the faster peer in the same round "
        "(KerasHub; transformers with its head at the masked tokens alone, which it can do but "
        "does not by itself: the row with the head at all tokens is what it does). To first: by "
        f"`{settings.positions[0]}`. CPU: the same of the processor time of all threads, which "
        "tells less of what else the machine did.",
        f"{settings.rounds} rounds, each with one step of every system in turn, every other one in "
        f"reverse order, after {_training_batch.WARM_UP_STEPS + 1} steps of each that are not "
        "counted.",
        "Peak MiB: growth of a process's largest memory from before its first step, when weights "
        "and optimizer state exist, to the end; compiled graphs are part of it.",
        "Of peak: model FLOPs per second, without recomputation, by those of the largest matrix "
        "product in the same run, the best of TensorFlow and torch.",
        "Waiting for rows: share of the wall time of the step spent in `next` of "
        f"`keras_tupe.data.tf_dataset`, training `{settings.positions[0]}` on rows in memory.",
    ]


if __name__ == "__main__":
    main()
