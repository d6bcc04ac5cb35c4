"""The other end of `_training_worker`: starts such processes, asks them, and ends them."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile

from benchmarks import _child


class Worker:
    """A process that does steps.

    Args:
        module: dotted name of a module that calls `_training_worker.serve`.
        job: what it holds; values that JSON knows.
        python: the interpreter.

    Attributes:
        facts: what it says about itself, once it is ready.

    Raises:
        ChildError: if it ends before it is ready; with the end of what it said.
    """

    def __init__(self, module, job, python=sys.executable):
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        if python != sys.executable:
            variables.pop("PYTHONPATH", None)  # would mix the packages of two environments
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, closed in `close`
        self._process = subprocess.Popen(
            [python, "-m", module, json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=_child.ROOT,
            env=variables,
            text=True,
        )
        try:
            self.facts = self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, word):
        """Sends a word and returns the answer, a dictionary.

        Raises:
            ChildError: if the process ends instead.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended; why is told below
            self._process.stdin.write(f"{word}\n")
            self._process.stdin.flush()
        return self._answer()

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
        code = self._process.wait()
        self._errors.seek(0)
        raise _child.ChildError(_child._reason(code, self._errors.read().decode(errors="replace")))
