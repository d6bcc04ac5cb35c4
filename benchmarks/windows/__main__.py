"""Time and memory of a train step with windows of attention, as texts get longer.

    python -m benchmarks.windows
    python -m benchmarks.windows --lengths 2048,16384 --positions rope,tupe_r --no-peer

An encoder under the pattern `sliding_window` with one global token, masked language modeling on one
text, in this package's `Trainer`, beside Longformer of Hugging Face transformers on torch, each in
a process of its own, in interleaved rounds. Writes `windows.json` and `windows.md` to `--out`. It
takes about half an hour on two cores.
"""

import sys

from benchmarks.windows.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "windows")
    from benchmarks.harness import provenance, report
    from benchmarks.windows.collect import collect
    from benchmarks.windows.report import definitions, markdown

    with sentences("windows", "Nothing was written."):
        facts = {
            **provenance.origin("windows", arguments),
            "settings": {
                "positions": settings.positions,
                "lengths": settings.lengths,
                "window": settings.window,
                "rounds": settings.rounds,
                "remat": settings.remat,
            },
            "definitions": definitions(settings),
        }
        record = {**facts, **collect(settings)}
    report.write(settings.out, "windows", record, markdown(record))
    if record["problems"]:
        sys.exit("windows: not everything could be measured; see the lines 'Failed' above")


if __name__ == "__main__":
    main()
