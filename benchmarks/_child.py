"""Work in a process of its own: a JSON job goes in, ticks of progress and a JSON result come out.

The standard library only, since the peer's environment has no Keras.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


class ChildError(Exception):
    """A process that ended without a result."""


def run(module, job, tick, python=sys.executable):
    """Runs `python -m module` on a job and waits for it.

    Args:
        module: dotted name of a module that calls `answer`.
        job: what to do; values that JSON knows.
        tick: function without arguments, called at each step of progress.
        python: the interpreter.

    Returns:
        The result of the child.

    Raises:
        ChildError: if the child fails; with the end of what it said.
    """
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if python != sys.executable:
        variables.pop("PYTHONPATH", None)  # would mix the packages of two environments
    found = []
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [python, "-m", module, json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env=variables,
            text=True,
        )
        try:
            for line in process.stdout:
                if line.startswith('{"tick"'):
                    tick()
                elif line.startswith('{"result"'):
                    found.append(json.loads(line)["result"])
            process.wait()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        if process.returncode or not found:
            errors.seek(0)
            raise ChildError(_reason(process.returncode, errors.read().decode(errors="replace")))
    return found[-1]


def answer(work):
    """Does the job on the command line of this process and prints the result.

    Args:
        work: function (job, tick) -> result, values that JSON knows.
    """

    def tick():
        print('{"tick": 1}', flush=True)

    print(json.dumps({"result": work(json.loads(sys.argv[1]), tick)}), flush=True)


def _reason(code, text):
    """Returns one line: how a process ended, and its last words."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    hint = ", perhaps for lack of memory" if code == -9 else ""
    return f"{ended}{hint}" + (f": {lines[-1][:300]}" if lines and code > 0 else "")
