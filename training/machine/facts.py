"""Facts of the machine, asked in another process: the devices stay free for the runs."""

import contextlib
import json
import subprocess
import sys

from training.command import start
from training.command.quiet import quiet_tensorflow


def machine_facts(precision):
    """Returns the kind of this machine, a dictionary, and the peak FLOP/s of one of its devices.

    Raises:
        ValueError: if the other process cannot use the device.
    """
    result = subprocess.run(
        start.words_of(__name__, precision),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["no reason given"]
        raise ValueError(
            "The device cannot be used; another program may have taken all of it. Received: "
            f"{lines[-1]}"
        )
    machine, peak = json.loads(result.stdout.splitlines()[-1])
    return machine, peak


def _main():
    quiet_tensorflow()
    from training.machine.kind import machine_kind
    from training.machine.peak import matmul_peak

    with contextlib.redirect_stdout(sys.stderr):
        facts = [machine_kind(), matmul_peak(sys.argv[1])]
    print(json.dumps(facts))


if __name__ == "__main__":
    _main()
