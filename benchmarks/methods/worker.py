"""Times or memory of the models here. A process of its own: `benchmarks.methods` starts it."""

import functools

import keras

from benchmarks.harness import memory
from benchmarks.harness.process import answer
from benchmarks.harness.provenance import versions
from benchmarks.methods import times
from benchmarks.methods.cases import Case, batch, build
from keras_tupe import positions


def work(job, tick):
    """Times all cases in interleaved rounds, or measures the memory of one if `memory` is set.

    Args:
        job: dictionary with `cases`, `sizes`, `length`, `batch_size`, `rounds`, `files` (of
            methods from outside the package) and `memory`.
        tick: called after each model that is ready and after each of a round.

    Returns:
        The peak memory of a train step in MiB, or a dictionary: `rows`, one for each case;
        `versions`; `devices`; `jit_compile`.

    Raises:
        RuntimeError: for memory on a GPU with another backend than JAX, which is not visible here.
    """
    for file in job["files"]:
        positions.load_file(file)
    inputs, targets = batch(job)
    cases = [Case(**entry) for entry in job["cases"]]
    if job["memory"]:
        model, small = build(cases[0], job), batch(job, *memory.SMALL)

        def small_step():
            model.train_on_batch(*small)
            model.make_train_function(force=True)  # else lengths are unknown from here on

        return memory.peak_mib(
            small_step,
            lambda: model.train_on_batch(inputs, targets),
            *memory.gauges(),
        )
    steps, parameters, compiled = {}, {}, set()
    for case in cases:
        model = build(case, job)
        # both return NumPy values, so the result is there when they return
        train = functools.partial(model.train_on_batch, inputs, targets)
        inference = functools.partial(model.predict_on_batch, inputs)
        train()
        inference()
        steps[case.label] = (train, inference)
        parameters[case.label] = model.count_params()
        compiled.add(model.jit_compile)
        tick()
    rows = times.measure(steps, job["rounds"], tick)
    return {
        "rows": [{**row, "parameters": parameters[label]} for label, row in rows.items()],
        "versions": versions(),
        "devices": keras.distribution.list_devices(),
        "jit_compile": sorted(compiled),
    }


if __name__ == "__main__":
    answer(work)
