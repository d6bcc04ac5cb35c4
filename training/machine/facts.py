"""What the machine is and can do, asked in another process: the devices stay free for the runs."""

import contextlib
import json
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def machine_facts(precision):
    """Returns the kind of this machine, and the peak FLOP/s of one of its devices.

    Args:
        precision: as in `training.pretrain`.

    Returns:
        Dictionary `machine_kind()`, and a float.

    Raises:
        ValueError: if the other process cannot use the device.
    """
    result = subprocess.run(
        [sys.executable, "-m", __spec__.name, precision],
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
    from training.machine.kind import machine_kind
    from training.machine.peak import matmul_peak

    with contextlib.redirect_stdout(sys.stderr):
        facts = [machine_kind(), matmul_peak(sys.argv[1])]
    print(json.dumps(facts))


if __name__ == "__main__":
    _main()
