"""Peak memory of one case. A process of its own: `benchmarks.methods` starts it."""

import keras

from benchmarks import _cases, _child, _peak
from keras_tupe import positions


def work(job, tick):
    """Returns the peak memory of a train step, in MiB.

    Args:
        job: dictionary with `cases` (one), `sizes`, `length`, `batch_size` and `files`.
        tick: called at the end.

    Raises:
        RuntimeError: on a GPU with another backend than JAX, whose memory is not visible here.
    """
    for file in job["files"]:
        positions.load_file(file)
    inputs, targets = _cases.batch(job)
    small_inputs, small_targets = _cases.batch(job, *_peak.SMALL)
    model = _cases.build(_cases.Case(**job["cases"][0]), job)
    result = _peak.peak_mib(
        lambda: model.train_on_batch(small_inputs, small_targets),
        lambda: model.train_on_batch(inputs, targets),
        *gauges(),
    )
    tick()
    return result


def gauges():
    """Returns functions for the memory in use and for its peak, in bytes: the GPU's if one is used.

    Raises:
        RuntimeError: on a GPU with another backend than JAX.
    """
    if not uses_gpu(keras.distribution.list_devices()):
        return _peak.resident, _peak.resident
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


if __name__ == "__main__":
    _child.answer(work)
