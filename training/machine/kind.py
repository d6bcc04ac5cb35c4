"""The kind of machine that numbers were made on."""

import os
import platform

import keras


def machine_kind():
    """Returns a dictionary: `cpu`, `cores` for this process, `gpu` or `None`, and `backend`."""
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "gpu": _gpu(),
        "backend": keras.backend.backend(),
    }


def cpu_name():
    """Returns the processor's name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("model name")]
    except OSError:
        lines = []
    return lines[0].split(":", 1)[1].strip() if lines else platform.machine()


def _gpu():
    """Returns the name of the first GPU that the backend uses."""
    from training.machine.peak import device_name

    name = device_name()
    return None if name.lower() in ("", "cpu") else name
