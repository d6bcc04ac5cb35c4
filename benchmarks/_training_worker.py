"""A process that holds one model and does one train step when it is told to.

So that many systems can be timed in turn although no Python environment has them all. One JSON
job comes on the command line, one word per line on standard input; JSON lines go out. The
standard library only, since the peer's environment has no Keras.
"""

import json
import sys
import time

from benchmarks import _peak


def serve(prepare):
    """Does what standard input asks for until it ends.

    `step` is answered with `wall` and `cpu`, seconds of this process and all of its threads, and
    `loss`; `memory` with the largest memory that this process has held, in MiB.

    Args:
        prepare: function (job) -> (step, facts): a function without arguments that does one train
            step and returns its loss, a float, when all is done; what to say about this process.
    """
    step, facts = prepare(json.loads(sys.argv[1]))
    _say(facts)
    for line in sys.stdin:
        _say(_timed(step) if line.strip() == "step" else {"mib": _peak.resident() / 2**20})


def _timed(step):
    started, cpu_started = time.perf_counter(), time.process_time()
    loss = step()
    cpu = time.process_time() - cpu_started
    return {"wall": time.perf_counter() - started, "cpu": cpu, "loss": loss}


def _say(answer):
    print(json.dumps({"answer": answer}), flush=True)
