"""Peak memory of a train step, in a process that does nothing else.

The standard library only, since the peer's environment has no Keras; `gauges` imports it late.
"""

import pathlib
import threading
import time

STEPS = 3
SMALL = (1, 2)  # batch size and length of the step before the measurement


def resident(process="self"):
    """Returns the largest memory that a process has held, in bytes. Linux only.

    Args:
        process: its number; by default this one.
    """
    # not `resource.getrusage`: a child's starts at the largest memory of its parent
    return _kibibytes(f"/proc/{process}/status", "VmHWM:")


def available():
    """Returns the memory that the machine has left, in bytes. Linux only."""
    return _kibibytes("/proc/meminfo", "MemAvailable:")


def _kibibytes(file, key):
    """Returns, in bytes, what the system says of a key in KiB."""
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(key)).split()[1])


def end_above(mib, end):
    """Ends this process soon after its memory grows by more than so much.

    Of all limits this one is of what is held, not of addresses, and leaves time for words.

    Args:
        mib: how much more than now it may hold, in MiB.
        end: function without arguments, called in another thread; it must end the process.
    """
    most = resident() + mib * 2**20

    def watch():
        while resident() <= most:
            time.sleep(0.005)
        end()

    threading.Thread(target=watch, daemon=True).start()


def peak_mib(small_step, step, before=resident, after=resident, steps=STEPS):
    """Returns by how much memory grows at most in some train steps, in MiB.

    Args:
        small_step: function without arguments, a train step on a tiny batch. It makes the
            optimizer's state and loads what every model loads, which is then not counted.
        step: function without arguments, the train step to measure.
        before: function without arguments, the memory in use, in bytes.
        after: function without arguments, the largest memory that was in use, in bytes.
        steps: number of steps to measure.
    """
    small_step()
    start = before()
    for _ in range(steps):
        step()
    return (after() - start) / 2**20


def gauges():
    """Returns functions for the memory in use and for its peak, in bytes: the GPU's if one is used.

    Raises:
        RuntimeError: on a GPU with another backend than JAX, whose memory is not visible here.
    """
    import keras

    if not uses_gpu(keras.distribution.list_devices()):
        return resident, resident
    if keras.backend.backend() != "jax":
        raise RuntimeError("the memory of a GPU is measured on the JAX backend only")
    import jax

    device = jax.local_devices()[0]
    return tuple(
        lambda key=key: device.memory_stats()[key] for key in ("bytes_in_use", "peak_bytes_in_use")
    )


def uses_gpu(devices):
    """Returns whether a list of Keras's device names has a GPU."""
    return any(name.lower().startswith(("gpu", "cuda")) for name in devices)
