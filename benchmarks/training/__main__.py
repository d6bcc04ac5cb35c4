"""Train steps of this package beside those of KerasHub and of Hugging Face transformers.

    python -m benchmarks.training
    python -m benchmarks.training --sizes base --shapes 2x512 --positions absolute,tupe_r
    python -m benchmarks.training --sizes tiny --peers keras_hub,transformers --precisions float32
    python -m benchmarks.training --sizes mini --xla auto off

Each system is a process of its own; in interleaved rounds each does one train step of masked
language modeling on the same batch: vocabulary logits at the masked tokens only, 15 % of them,
dropout 0.1, AdamW, clipping by the global norm. Systems: `keras_tupe.trainer.Trainer` with each
position method, in `fit`; and its peers as their users run them fastest: KerasHub's `BertMaskedLM`
in `fit`, as it is, compiled by XLA, and on JAX in a Python environment of its own; on torch, CPU,
with SDPA, `BertForMaskedLM` as it is and with `torch.compile`, in another. Environments are made
once; a peer that cannot run, or for which there is no memory left, is left out with the reason. The
fastest peer of each round counts. Reports ratios to it, to KerasHub and to the first method, by
wall and by processor time, tokens per second, memory, and the share of the largest matrix product's
speed that the model's FLOPs make (`keras_tupe.trainer.step_flops`: 6 per weight and token, 12 per
layer, width, token and key, 6 per masked token and weight of the head and of the last layer's
feed-forward network). Writes `training.json` and
`training.md` to `--out`, and says first about how long it will take: an hour and a half on two
cores, of which `base`, with few rounds and without extras, is a third. torch waits by spinning: on
a machine that does something else too, compare with OMP_WAIT_POLICY=PASSIVE, or it is several times
slower.
"""

import sys

from benchmarks.training.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "training")
    from benchmarks.harness import provenance, report
    from benchmarks.training import batch as batches
    from benchmarks.training.collect import collect
    from benchmarks.training.report import definitions, markdown

    facts = {
        **provenance.origin("training", arguments),
        "settings": {
            "sizes": settings.sizes,
            "positions": settings.positions,
            "precisions": settings.precisions,
            "shapes": {size: settings.shapes_of(size) for size in settings.sizes},
            "rounds": {size: settings.rounds_of(size) for size in settings.sizes},
            "vocabulary_size": {size: settings.vocabulary_of(size) for size in settings.sizes},
            "xla": settings.xla,
            "peers": settings.peer_names,
            "dropout": batches.DROPOUT,
            "learning_rate": batches.LEARNING_RATE,
        },
        "definitions": definitions(settings),
    }
    with sentences("training", "Nothing was written."):
        record = {**facts, **collect(settings)}
    report.write(settings.out, "training", record, markdown(record))
    if record["problems"]:
        sys.exit("training: not everything could be measured; see the lines 'Failed' above")


if __name__ == "__main__":
    main()
