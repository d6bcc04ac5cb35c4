"""Other commands, each in a process of its own that does not outlive this one."""

import contextlib
import os
import runpy
import signal
import subprocess
import sys
import threading
import time

from training.command import start

_LOOK_SECONDS = 0.1


class Stop:
    """Hands on the wish to end (SIGINT, SIGTERM) to the command that runs, while it is in use.

    The command gets SIGTERM, on which it saves and ends; at the second wish it is killed.

    Attributes:
        received: whether somebody wished it.
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

        What it tells on standard error is shown, its standard output is not.

        Args:
            module: such as `"training.pretrain"`.
            words: list of strings.
        """
        if self.received:
            return None
        self._process = subprocess.Popen(
            start.words_of(__name__, str(os.getpid()), module, *words),
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


def _main():
    """What the other process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the whole group
    parent, module = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
