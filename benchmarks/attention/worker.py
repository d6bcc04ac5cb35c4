"""Times or memory of attention layers. A process of its own: `benchmarks.attention` starts it."""

import os
import time

import keras

from benchmarks.attention import layer
from benchmarks.harness import memory
from benchmarks.harness.process import answer, give
from benchmarks.harness.provenance import versions
from benchmarks.harness.rounds import turns
from keras_tupe import positions


def work(job, tick):
    """Times all cases in interleaved rounds, or measures the memory of one if `memory` is set.

    Args:
        job: dictionary with `cases` (each a `label`, a `position` and `options`), `heads`,
            `head_dim`, `length`, `batch_size`, `precision`, `xla`, `files` (of methods from outside
            the package), `memory`, and `rounds` or `limit_mib`.
        tick: called after each case that is ready and after each of a round.

    Returns:
        Of the memory, a dictionary: `mib`; `wall` and `cpu`, seconds of the last step; or
        `above_mib`, the limit, if there it ended. Of times, a dictionary: label -> list of `wall`
        and `cpu` of each round. Both with `versions`.
    """
    for file in job["files"]:
        positions.load_file(file)
    if job["memory"]:
        return {**_memory(job), "versions": versions()}
    steps = {case["label"]: _step(case, job) for case in job["cases"]}
    for step in steps.values():
        step()
        tick()
    found = {label: [] for label in steps}
    for index, label in turns(steps, job["rounds"]):
        seconds = _timed(steps[label])
        if index > 0:
            found[label].append(seconds)
        tick()
    return {"times": found, "versions": versions()}


def _step(case, job):
    model = layer.attention_model(case["position"], case["options"], job)
    return layer.step_of(model, job["batch_size"], job["length"], job["xla"])


def _memory(job):
    (case,) = job["cases"]
    model = layer.attention_model(case["position"], case["options"], job)
    small = layer.step_of(model, *memory.SMALL, job["xla"])
    step = layer.step_of(model, job["batch_size"], job["length"], job["xla"])
    seconds = {}

    def limited():
        small()
        uses_gpu = memory.uses_gpu(keras.distribution.list_devices())
        if not uses_gpu:  # else its own memory is the limit
            memory.end_above(job["limit_mib"], _end(job))

    mib = memory.peak_mib(
        limited, lambda: seconds.update(_timed(step)), *memory.gauges(), steps=job["steps"]
    )
    return {"mib": mib, **seconds}


def _end(job):
    def end():
        give({"above_mib": job["limit_mib"], "versions": versions()})
        os._exit(0)

    return end


def _timed(step):
    started, cpu_started = time.perf_counter(), time.process_time()
    step()
    cpu = time.process_time() - cpu_started
    return {"wall": time.perf_counter() - started, "cpu": cpu}


if __name__ == "__main__":
    answer(work)
