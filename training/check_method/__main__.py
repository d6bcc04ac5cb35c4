"""Checks every promise of a positional method, in a Python file anywhere.

    keras-tupe check-method my_method.py

The layers are compared with the oracle in float64, at 1e-12 and with scrambled weights, under every
option and whole encoders too; the oracle must not lean on the layers; then padding, order, length,
precision, gradients, training, files and exports. This is what the tests ask of the package's own
methods. It takes about a minute on two cores, and ends with 0 if all promises are kept, else 1.
"""

import os

os.environ.setdefault("JAX_ENABLE_X64", "1")  # else JAX turns float64 into float32

import sys

from training.check_method.settings import Settings
from training.command.settings import parse
from training.command.shell import FAILED, sentences
from training.command.tables import table


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "check_method")
    with sentences("check_method", "Nothing was written."):
        outcomes = _outcomes(settings.method, settings.only)
    if any(outcome.result == "BROKEN" for outcome in outcomes):
        sys.exit(FAILED)


def _outcomes(method, only):
    """Prints what comes of each check, and returns it."""
    from keras_tupe import positions
    from training.check_method import suite

    name = positions.load_file(method) if method.endswith(".py") else method
    outcomes, checks = [], suite.checks(name)
    chosen = [check for check in checks if only in check.promise]
    if not chosen:
        raise ValueError(
            "--only must be a part of the name of a promise. Expected a part of one of "
            f"{[check.promise for check in checks]}. Received: {only!r}"
        )
    for check in chosen:
        outcomes.append(suite.run(check))
        if sys.stderr.isatty():
            print(f"\r{len(outcomes)} checks", end="", file=sys.stderr, flush=True)
    rows = [
        [one.promise, one.result, str(one.count) if one.count else "", f"{one.seconds:.1f}"]
        for one in outcomes
    ]
    print(table(["promise", "result", "cases", "seconds"], rows))
    broken = [one for one in outcomes if one.result == suite.BROKEN]
    for one in broken:
        print(f"\n{one.promise}: {one.reason}")
    left_out = [f"{one.promise} ({one.reason})" for one in outcomes if not one.count]
    if left_out:
        print("\nLeft out: " + "; ".join(left_out) + ".")
    kept = sum(one.result == suite.KEPT for one in outcomes)
    seconds = sum(one.seconds for one in outcomes)
    print(f"\n{name} keeps {kept} of {kept + len(broken)} promises ({seconds:.0f} s).")
    return outcomes


if __name__ == "__main__":
    main()
