"""The plan of a whole command: its stages, and one bar with the time left of all of it."""

import dataclasses
import os
import sys
import threading
import time

import tqdm

LINE_SECONDS = 60
_TICK_SECONDS = 0.5
_SURE = 0.25  # share of a stage after which its own speed alone tells how long it takes
_OVERDUE = 0.1  # of the time that a stage has taken, if it takes longer than expected
_HELD = 1.1  # a time left that rises by less than this is shown as it was
_DOUBT = 0.1  # of the plan: how much of it must have been measured to change the rest by half
_UNITS = 1000  # of the bar


@dataclasses.dataclass
class Stage:
    """A part of a command that has a name.

    Attributes:
        name: in a few words, as it is shown.
        seconds: that it is expected to take.
        kind: stages of one kind take as long as expected by the same factor; none by default.
        is_measured: whether `seconds` is more than a guess made for another machine.
    """

    name: str
    seconds: float
    kind: str = ""
    is_measured: bool = False


class Stages:
    """Shows how far a command is, and how much time is left: one bar, or a line per minute.

    The plan is corrected as the work goes on: a stage that tells its share by its own speed, the
    stages of its kind by the same factor, and all that is only guessed by how long the stages
    before took. In a terminal the bar also moves while a stage says nothing.

    A context manager. Stages follow each other in the order in which they were first expected.

    Args:
        name: of the command; lines begin with it.
        spent: seconds that the command has taken already.
        line_seconds: seconds between two lines where there is no terminal.
        tick_seconds: seconds between two looks at the clock, or `None` for none.
        stream: where to write; standard error by default.
        clock: function that returns seconds.

    Attributes:
        seconds: dictionary of the name of each stage that has ended -> seconds that it took.

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
        self.seconds = {}
        self._stages = {}  # name -> Stage, in their order
        self._line_seconds = line_seconds
        self._stream = _own_standard_error() if stream is None else stream
        self._is_own = stream is None and self._stream is not sys.stderr
        self._clock = clock
        self._start = clock() - spent
        self._last_line = clock()
        self._current, self._began = None, None
        self._done, self._told = 0.0, None  # share of the stage, when it was told
        self._facts = ""
        self._expected = self._taken = 0.0  # of guessed stages that have ended
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
            self._stages[name] = Stage(name, max(seconds, 1e-3), kind, measured)

    def begin(self, name):
        """Ends the stage that was, and begins another; those between the two are left out."""
        with self._lock:
            self._end()
            self._current, self._began = self._stages[name], self._clock()
            self._done, self._told, self._facts = 0.0, self._began, ""
            for before in list(self._stages):
                if before == name:
                    break
                if before not in self.seconds:
                    del self._stages[before]
        self.refresh()

    def at(self, share, facts=""):
        """Says how much of the stage is done.

        Args:
            share: from 0 to 1.
            facts: what to show beside it, a short text.
        """
        with self._lock:
            self._done, self._told, self._facts = min(share, 1.0), self._clock(), facts
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
    def taken(self):
        """Seconds since the command began."""
        return self._clock() - self._start

    @property
    def left(self):
        """Seconds that are left of the whole command, as far as known now."""
        with self._lock:
            if self._current is None:
                return sum(map(self._planned, self._ahead()))
            now = self._clock()
            seconds, remaining = self._outlook(now)
            return remaining + sum(
                stage.seconds * seconds / self._current.seconds
                if self._current.kind and stage.kind == self._current.kind
                else self._planned(stage)
                for stage in self._ahead()
            )

    @property
    def share(self):
        """The share of the whole command that is done, in time."""
        left, taken = self.left, self.taken
        return taken / max(left + taken, 1e-9)

    def refresh(self):
        """Brings the bar up to date, or writes a line if it is time for one."""
        with self._lock:
            if self._closed.is_set() or self._current is None:
                return
            now = self._clock()
            self._shown_share = max(self._shown_share, min(self.share, 1.0))
            if self._bar.disable:
                if now - self._last_line >= self._line_seconds:
                    self._last_line = now
                    done = f" ({self._done:.0%})" if self._done else ""
                    stage = f"{self._current.name}{done}{self._more()}"
                    left = f"{self._shown_share:.0%} done, {self._text_of_left(now)} left"
                    print(f"{self.name}: {left}: {stage}", file=self._stream, flush=True)
                return
            self._bar.n = int(_UNITS * self._shown_share)
            text = f"{self._text_of_left(now)} left: {self._current.name}{self._more()}"
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.refresh()

    def finish(self):
        """Ends the last stage: all is done."""
        with self._lock:
            self._end()
            if self._current is not None and not self._bar.disable:
                self._bar.n = _UNITS
                self._bar.set_postfix_str(f"{_clock_text(self.taken)} in all", refresh=False)
                self._bar.refresh()
            self._current = None
            for name in list(self._stages):
                if name not in self.seconds:
                    del self._stages[name]

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

    def _ahead(self):
        """The stages to come."""
        return [
            stage
            for name, stage in self._stages.items()
            if name not in self.seconds and stage is not self._current
        ]

    def _end(self):
        stage = self._current
        if stage is None or stage.name in self.seconds:
            return
        taken = self.seconds[stage.name] = self._clock() - self._began
        if not stage.is_measured:
            self._expected += stage.seconds
            self._taken += taken
        for other in self._ahead():
            if stage.kind and other.kind == stage.kind:
                other.seconds *= taken / stage.seconds
                other.is_measured = True

    def _planned(self, stage):
        """The seconds of a stage that has not begun."""
        if stage.is_measured:
            return stage.seconds
        guessed = sum(s.seconds for s in self._stages.values() if not s.is_measured)
        doubt = _DOUBT * guessed
        return stage.seconds * (self._taken + doubt) / max(self._expected + doubt, 1e-9)

    def _outlook(self, now):
        """Seconds that the current stage will have taken, and those of them that remain."""
        planned, done = self._planned(self._current), self._done
        if not done:
            taken = now - self._began
            remaining = max(planned - taken, _OVERDUE * taken)
            return max(planned, taken + remaining), remaining
        speed = (self._told - self._began) / done
        sure = min(done / _SURE, 1.0)
        seconds = (1 - sure) * planned + sure * speed
        since = now - self._told
        remaining = max((1 - done) * seconds - since, _OVERDUE * since)
        return seconds, remaining if done < 1 else 0.0

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
