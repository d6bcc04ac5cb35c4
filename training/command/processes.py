"""Commands in processes of their own, which do not outlive this one.

`python -m` looks into the current folder first, which may have a `training` of its own. This file
is run by its path, looks first where the package lies that it is a part of, and then does as
`python -m` does.
"""

import contextlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import time

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LOOK_SECONDS = 0.1
_PARENT = "--parent"


def words_of(module, *words):
    """Returns the command line of a process that does what `python -m module words` does."""
    return [sys.executable, "-P", os.path.abspath(__file__), module, *words]


@contextlib.contextmanager
def safe_environment():
    """Inside of it, processes that others start with `python -m` do not look here first either."""
    names = ("PYTHONSAFEPATH", "PYTHONPATH")
    before = {name: os.environ.get(name) for name in names}
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_ROOT, before["PYTHONPATH"]]))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class Stop:
    """Hands on the wish to end (SIGINT, SIGTERM), if `received`, to the command that runs.

    The command gets SIGTERM, on which it saves and ends; at the second wish it is killed.
    """

    def __init__(self):
        self.received = False
        self._process = self._signal = None

    def __enter__(self):
        signals = (signal.SIGINT, signal.SIGTERM)
        self._before = {number: signal.signal(number, self._note) for number in signals}
        return self

    def __exit__(self, kind, error, trace):
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if isinstance(error, KeyboardInterrupt) and self.received:
            error.signal = self._signal  # for the exit code

    def run(self, module, words):
        """Runs `python -m module words` and waits for its end; returns its exit status.

        What it tells on standard error is shown, its standard output is not. It is killed when this
        process ends.
        """
        if self.received:
            return None
        self._process = subprocess.Popen(
            words_of(_PARENT, str(os.getpid()), module, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            if self.received:  # since the look above
                self._process.terminate()
            return self._process.wait()
        finally:
            self._process = None

    def _note(self, number, _):
        process, again = self._process, self.received
        self.received, self._signal = True, number
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL if again else signal.SIGTERM)


def _end_with(parent):
    """Kills this process as soon as it is not a child of `parent` any more."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.path.insert(0, _ROOT)
    del sys.argv[0]
    if sys.argv[0] == _PARENT:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the whole group
        threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
        del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
