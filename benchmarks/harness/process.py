"""Work in processes of their own: a JSON job goes in, JSON lines come out.

`run` and `answer` are the two ends of a job that is done once, `Worker` and `serve` those of a
process that holds a model and does a step when it is told to, so that systems can be timed in turn
although no Python environment has them all. The standard library only, since the peer's
environment has no Keras.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks.harness.memory import resident

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ChildError(ChildProcessError):
    """A process that ended without a result."""


def run(module, job, tick, python=sys.executable, environment=None):
    """Runs `python -m module` on a job and waits for it.

    Args:
        module: dotted name of a module that calls `answer`.
        job: what to do; values that JSON knows.
        tick: function without arguments, called at each step of progress.
        python: the interpreter.
        environment: dictionary of variables that it has besides those of this process.

    Returns:
        The result of the child.

    Raises:
        ChildError: if the child fails; with the end of what it said.
    """
    found = []
    with tempfile.TemporaryFile() as errors:
        process = _started(module, job, python, subprocess.DEVNULL, errors, environment)
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
            raise _failure(process.returncode, errors)
    return found[-1]


def answer(work):
    """Does the job on the command line of this process and prints the result.

    Args:
        work: function (job, tick) -> result, values that JSON knows.
    """

    def tick():
        print('{"tick": 1}', flush=True)

    give(work(json.loads(sys.argv[1]), tick))


def give(result):
    """Prints the result of this process, which `run` returns."""
    print(json.dumps({"result": result}), flush=True)


class Worker:
    """A process that does steps.

    Args:
        module: dotted name of a module that calls `serve`.
        job: what it holds; values that JSON knows.
        python: the interpreter.
        environment: dictionary of variables that it has besides those of this process.

    Attributes:
        facts: what it says about itself, once it is ready.

    Raises:
        ChildError: if it ends before it is ready; with the end of what it said.
    """

    def __init__(self, module, job, python=sys.executable, environment=None):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, closed in `close`
        pipe = subprocess.PIPE
        self._process = _started(module, job, python, pipe, self._errors, environment)
        try:
            self.facts = self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, word):
        """Sends a word, `"step"` or `"memory"`, and returns the answer, a dictionary.

        Raises:
            ChildError: if the process ends instead.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended; why is told below
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()
        return self._answer()

    def resident(self):
        """Returns the largest memory that the process has held, in bytes."""
        return resident(self._process.pid)

    def close(self):
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()

    def _answer(self):
        for line in self._process.stdout:
            if line.startswith('{"answer"'):
                return json.loads(line)["answer"]
        raise _failure(self._process.wait(), self._errors)


def serve(prepare, warm_up_steps):
    """Does what standard input asks for, a word per line, until it ends; see `Turns`.

    Args:
        prepare: function (job) -> (step, facts): a function without arguments that does one step
            and returns a dictionary of numbers when all is done; what to say about this process.
            Weights and optimizer state exist when it returns.
        warm_up_steps: as in `Turns`. `steps_per_turn` may be in the job.
    """
    job = json.loads(sys.argv[1])
    step, facts = prepare(job)
    turns = Turns(lambda: facts, warm_up_steps, job.get("steps_per_turn", 1))
    while True:
        turns.begin()
        turns.end(step())


class Turns:
    """What standard input asks for, a word per line, in a process with any loop of steps.

    `step` is answered, after `steps_per_turn` steps, with what the last one returned, and with
    `wall` and `cpu`, seconds per step of this process and all of its threads; `memory` with `mib`,
    by how much the largest memory of this process has grown since this object was made. The loop
    calls `begin` and `end`, and the process ends in `begin` when standard input does.

    Args:
        facts: function without arguments: what to say about this process, asked when it is ready.
        warm_up_steps: number of steps before the first that is asked for.
        steps_per_turn: number of steps, at least, of one answer.
    """

    def __init__(self, facts, warm_up_steps, steps_per_turn=1):
        self._facts, self._warm_up, self._wanted = facts, warm_up_steps, steps_per_turn
        self._start = resident()
        self._done, self._clocks = 0, None

    def begin(self):
        """Waits until a step is asked for, unless it belongs to a turn that has begun."""
        if self._warm_up > 0 or self._clocks is not None:
            return
        if self._facts is not None:
            _say(self._facts())
            self._facts = None
        for line in sys.stdin:
            if line.strip() == "step":
                self._done, self._clocks = 0, (time.perf_counter(), time.process_time())
                return
            _say({"mib": (resident() - self._start) / 2**20})
        sys.exit()

    def end(self, found, steps=1):
        """Answers if this ends a turn.

        Args:
            found: what the step returned, a dictionary.
            steps: number of steps since `begin`.
        """
        if self._clocks is None:
            self._warm_up -= steps
            return
        self._done += steps
        if self._done >= self._wanted:
            ends = (time.perf_counter(), time.process_time())
            wall, cpu = (
                (end - start) / self._done for end, start in zip(ends, self._clocks, strict=True)
            )
            self._clocks = None
            _say({**found, "wall": wall, "cpu": cpu})


def _say(found):
    print(json.dumps({"answer": found}), flush=True)


def _started(module, job, python, stdin, errors, environment=None):
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **(environment or {})}
    if python != sys.executable:
        variables.pop("PYTHONPATH", None)  # would mix the packages of two environments
    return subprocess.Popen(
        [python, "-m", module, json.dumps(job)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=ROOT,
        env=variables,
        text=True,
    )


def _failure(code, errors):
    """Returns an error of one line: how a process ended, and its last words."""
    errors.seek(0)
    text = errors.read().decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    hint = ", perhaps for lack of memory" if code == -9 else ""
    said = f": {lines[-1][:300]}" if lines and code > 0 else ""
    return ChildError(f"{ended}{hint}{said}")
