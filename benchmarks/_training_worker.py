"""A process that holds one model and does one train step when it is told to.

So that many systems can be timed in turn although no Python environment has them all. One JSON
job comes on the command line, one word per line on standard input; JSON lines go out. No
Keras, since the peer's environment has none.
"""

import json
import sys
import time

from benchmarks import _peak, _training_batch


def serve(prepare):
    """Does what standard input asks for until it ends.

    `step` is answered with what the step returned, and with `wall` and `cpu`, seconds of this
    process and all of its threads; `memory` with `mib`, by how much the largest memory of this
    process has grown since before the first step.

    Args:
        prepare: function (job) -> (step, facts): a function without arguments that does one step
            and returns a dictionary of numbers when all is done; what to say about this process.
            Weights and optimizer state exist when it returns.
    """
    step, facts = prepare(json.loads(sys.argv[1]))
    start = _peak.resident()
    for _ in range(_training_batch.WARM_UP_STEPS):
        step()
    _say(facts)
    for line in sys.stdin:
        if line.strip() == "step":
            _say(_timed(step))
        else:
            _say({"mib": (_peak.resident() - start) / 2**20})


def _timed(step):
    started, cpu_started = time.perf_counter(), time.process_time()
    found = step()
    cpu = time.process_time() - cpu_started
    return {**found, "wall": time.perf_counter() - started, "cpu": cpu}


def _say(answer):
    print(json.dumps({"answer": answer}), flush=True)
