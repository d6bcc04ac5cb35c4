"""Times all cases of one length. A process of its own: `benchmarks.methods` starts it."""

import functools
import importlib.metadata
import platform

import keras

from benchmarks import _cases, _child, _rounds
from keras_tupe import positions


def work(job, tick):
    """Builds all models, then times them in interleaved rounds.

    Args:
        job: dictionary with `cases`, `sizes`, `length`, `batch_size`, `rounds` and `files`
            (of methods from outside the package).
        tick: called after each model that is ready and after each of a round.

    Returns:
        A dictionary: `rows`, one for each case; `versions`; `devices`; `jit_compile`.
    """
    for file in job["files"]:
        positions.load_file(file)
    inputs, targets = _cases.batch(job)
    steps, parameters, compiled = {}, {}, set()
    for entry in job["cases"]:
        case = _cases.Case(**entry)
        model = _cases.build(case, job)
        # both return NumPy values, so the result is there when they return
        train = functools.partial(model.train_on_batch, inputs, targets)
        inference = functools.partial(model.predict_on_batch, inputs)
        train()
        inference()
        steps[case.label] = (train, inference)
        parameters[case.label] = model.count_params()
        compiled.add(model.jit_compile)
        tick()
    rows = _rounds.measure(steps, job["rounds"], tick)
    return {
        "rows": [{**row, "parameters": parameters[label]} for label, row in rows.items()],
        "versions": versions(),
        "devices": keras.distribution.list_devices(),
        "jit_compile": sorted(compiled),
    }


def versions():
    """Returns the versions of what does the computing, by name."""
    backend = keras.backend.backend()
    names = ["keras", "numpy", *{"jax": ["jax", "jaxlib"]}.get(backend, [backend])]
    return {
        "python": platform.python_version(),
        "backend": backend,
        **{name: importlib.metadata.version(name) for name in names},
    }


if __name__ == "__main__":
    _child.answer(work)
