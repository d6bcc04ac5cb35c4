"""Inference of exported encoders: a position method, `absolute`, and KerasHub's BERT.

    python -m benchmarks.exports
    python -m benchmarks.exports --positions tupe_r,t5 --lengths 128 --rounds 100

Every encoder is exported at each length, loaded as a SavedModel and called through
`serving_default`, in interleaved rounds. Ratios are medians over rounds of times in the same round,
with their 95 % interval. Writes `exports.json` and `exports.md` to `--out`.
"""

import dataclasses

from benchmarks.exports.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "exports")
    from benchmarks.exports.collect import collect
    from benchmarks.exports.report import markdown
    from benchmarks.harness import provenance, report
    from keras_tupe import SIZES

    lists = ("positions", "lengths", "batches")
    facts = {
        **{name: ",".join(map(str, getattr(settings, name))) for name in lists},
        "rounds": settings.rounds,
        "size": settings.size,
        **dataclasses.asdict(SIZES[settings.size]),
    }
    record = {**provenance.origin("exports", arguments), "settings": facts}
    with sentences("exports", "Nothing was written."):
        record["rows"] = collect(settings)
    report.write(settings.out, "exports", record, markdown(record))


if __name__ == "__main__":
    main()
