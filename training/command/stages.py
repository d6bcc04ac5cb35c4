"""One bar for a whole command: the stage under way, and the time left of all of it."""

import os
import sys
import threading
import time

import tqdm

from training.command.stage_plan import StagePlan

LINE_SECONDS = 60
_TICK_SECONDS = 0.5
_HELD = 1.1  # a time left that rises by less than this is shown as it was
_UNITS = 1000  # of the bar


class Stages:
    """Shows how far a command is, and how much time is left: one bar, or a line per minute.

    The time left is that of a `StagePlan`. In a terminal the bar also moves while a stage says
    nothing. A context manager.

    Args:
        name: of the command; lines begin with it.
        spent: seconds that the command has taken already.
        line_seconds: seconds between two lines where there is no terminal.
        tick_seconds: seconds between two looks at the clock, or `None` for none.
        stream: where to write; standard error by default.
        clock: function that returns seconds.

    Example:
        >>> import io
        >>> now = [0.0]
        >>> stages = Stages("demo", tick_seconds=None, stream=io.StringIO(), clock=lambda: now[0])
        >>> stages.expect("reading", 10, measured=True)
        >>> stages.expect("training", 60, measured=True)
        >>> stages.begin("reading")
        >>> now[0] = 20.0
        >>> stages.begin("training")
        >>> stages.left, stages.share
        (60.0, 0.25)
    """

    def __init__(
        self,
        name,
        *,
        spent=0.0,
        line_seconds=LINE_SECONDS,
        tick_seconds=_TICK_SECONDS,
        stream=None,
        clock=time.monotonic,
    ):
        self.name = name
        self._plan = StagePlan(spent, clock)
        self._line_seconds = line_seconds
        self._stream = _own_standard_error() if stream is None else stream
        self._is_own = stream is None and self._stream is not sys.stderr
        self._clock = clock
        self._last_line = clock()
        self._facts = ""
        self._shown_left, self._shown_at, self._shown_share = None, None, 0.0
        self._lock = threading.RLock()
        self._bar = tqdm.tqdm(
            total=_UNITS,
            disable=None,
            file=self._stream,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar}|{postfix}",
        )
        self._closed = threading.Event()
        if tick_seconds is not None:
            threading.Thread(target=self._tick, args=(tick_seconds,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.finish()
        self.close()

    def expect(self, name, seconds, kind="", measured=False):
        """Adds a stage to the plan, or corrects one that has not begun.

        Args:
            name: of the stage.
            seconds: that it is expected to take, >= 0.
            kind: see `Stage`.
            measured: whether the seconds are of this machine; else they are corrected by how long
                other stages took.
        """
        with self._lock:
            self._plan.expect(name, seconds, kind, measured)

    def drop(self, name):
        """Takes a stage that has not begun out of the plan.

        Args:
            name: of the stage.

        Returns:
            The seconds that it was expected to take.
        """
        with self._lock:
            return self._plan.drop(name)

    def begin(self, name):
        """Ends the stage that was, and begins another; those between the two are left out."""
        with self._lock:
            self._plan.begin(name)
            self._facts = ""
        self.refresh()

    def at(self, share, facts=""):
        """Says how much of the stage is done.

        Args:
            share: from 0 to 1.
            facts: what to show beside it, a short text.
        """
        with self._lock:
            self._plan.at(share)
            self._facts = facts
        if self._bar.disable:
            self.refresh()

    def wrap(self, items):
        """Yields the items of a sequence; each is a step of the stage."""
        for number, item in enumerate(items):
            self.at(number / len(items))
            yield item

    def say(self, text, stream=None):
        """Writes text of its own above the bar, to standard output unless told otherwise."""
        with self._lock:
            self._bar.clear()
            print(text, file=stream or sys.stdout, flush=True)
            self.refresh()

    @property
    def seconds(self):
        """Seconds of each stage that has ended, a dictionary."""
        return self._plan.seconds

    @property
    def taken(self):
        """Seconds since the command began."""
        return self._plan.taken

    @property
    def left(self):
        """Seconds that are left of the whole command, as far as known now."""
        with self._lock:
            return self._plan.left

    @property
    def share(self):
        """The share of the whole command that is done, in time."""
        with self._lock:
            return self._plan.share

    def refresh(self):
        """Brings the bar up to date, or writes a line if it is time for one."""
        with self._lock:
            if self._closed.is_set() or self._plan.current is None:
                return
            now = self._clock()
            if self._bar.disable and now - self._last_line < self._line_seconds:
                return
            self._shown_share = max(self._shown_share, min(self.share, 1.0))
            if self._bar.disable:
                self._last_line = now
                done = f" ({self._plan.done:.0%})" if self._plan.done else ""
                stage = f"{self._plan.current.name}{done}{self._more()}"
                left = f"{self._shown_share:.0%} done, {self._text_of_left(now)} left"
                print(f"{self.name}: {left}: {stage}", file=self._stream, flush=True)
                return
            self._bar.n = int(_UNITS * self._shown_share)
            text = f"{self._text_of_left(now)} left: {self._plan.current.name}{self._more()}"
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.refresh()

    def finish(self):
        """Ends the last stage: all is done."""
        with self._lock:
            if self._plan.current is not None and not self._bar.disable:
                self._bar.n = _UNITS
                self._bar.set_postfix_str(f"{_clock_text(self.taken)} in all", refresh=False)
                self._bar.refresh()
            self._plan.finish()

    def close(self):
        """Leaves the bar where it is."""
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                self._bar.close()
                if self._is_own:
                    self._stream.close()

    def _tick(self, seconds):
        while not self._closed.wait(seconds):
            self.refresh()

    def _more(self):
        return f", {self._facts}" if self._facts else ""

    def _text_of_left(self, now):
        """The time left, which does not rise for a little."""
        left = self.left
        if self._shown_left is not None:
            before = max(self._shown_left - (now - self._shown_at), 0.0)
            if before < left < _HELD * before:
                left = before
        self._shown_left, self._shown_at = left, now
        return _clock_text(left)


def _own_standard_error():
    """Returns standard error, also where others hold it back while they are imported."""
    try:
        return open(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, closefd=True)
    except (AttributeError, OSError, ValueError):  # no file
        return sys.stderr


def _clock_text(seconds):
    return tqdm.tqdm.format_interval(round(seconds))
