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
            "lengths": settings.lengths,
            "rounds": settings.rounds,
            "tokens": {size: settings.tokens_of(size) for size in settings.sizes},
            "vocabulary_size": {size: settings.vocabulary_of(size) for size in settings.sizes},
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
