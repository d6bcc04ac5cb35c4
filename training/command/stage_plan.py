"""The plan of a command: its stages, how long each takes, and what is left of all."""

import dataclasses
import time

_SURE = 0.25  # share of a stage after which its own speed alone tells how long it takes
_OVERDUE = 0.1  # of the time that a stage has taken, if it takes longer than expected
_DOUBT = 0.1  # of the plan: how much of it must have been measured to change the rest by half


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


class StagePlan:
    """The stages of a command, corrected as the work goes on.

    A stage that tells its share is corrected by its own speed, the stages of its kind by the same
    factor, and all that is only guessed by how long the stages before took. Stages follow each
    other in the order in which they were first expected.

    Args:
        spent: seconds that the command has taken already.
        clock: function that returns seconds.

    Attributes:
        current: the `Stage` that is under way, or `None`.
        done: the share of it that is done.
        seconds: dictionary of the name of each stage that has ended -> seconds that it took.
    """

    def __init__(self, spent=0.0, clock=time.monotonic):
        self.current, self.done, self.seconds = None, 0.0, {}
        self._stages = {}  # name -> Stage, in their order
        self._clock = clock
        self._start = clock() - spent
        self._began = self._told = None  # when the stage began, and last told its share
        self._expected = self._taken = 0.0  # of guessed stages that have ended

    def expect(self, name, seconds, kind="", measured=False):
        """Adds a stage, or corrects one that has not begun; see `Stages.expect`."""
        self._stages[name] = Stage(name, max(seconds, 1e-3), kind, measured)

    def drop(self, name):
        """Takes out a stage that has not begun, and returns its seconds; see `Stages.drop`."""
        return self._stages.pop(name).seconds

    def begin(self, name):
        """Ends the stage that was, and begins another; those between the two are left out."""
        self.end()
        self.current, self._began = self._stages[name], self._clock()
        self.done, self._told = 0.0, self._began
        for before in list(self._stages):
            if before == name:
                break
            if before not in self.seconds:
                del self._stages[before]

    def at(self, share):
        """Says how much of the stage is done, from 0 to 1."""
        self.done, self._told = min(share, 1.0), self._clock()

    def end(self):
        """Ends the stage, and corrects those of its kind."""
        stage = self.current
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

    def finish(self):
        """Ends the last stage: what has not begun is left out."""
        self.end()
        self.current = None
        for stage in self._ahead():
            del self._stages[stage.name]

    @property
    def taken(self):
        """Seconds since the command began."""
        return self._clock() - self._start

    @property
    def left(self):
        """Seconds that are left of the whole command, as far as known now."""
        if self.current is None:
            return sum(map(self._planned, self._ahead()))
        seconds, remaining = self._outlook(self._clock())
        return remaining + sum(
            stage.seconds * seconds / self.current.seconds
            if self.current.kind and stage.kind == self.current.kind
            else self._planned(stage)
            for stage in self._ahead()
        )

    @property
    def share(self):
        """The share of the whole command that is done, in time."""
        left, taken = self.left, self.taken
        return taken / max(left + taken, 1e-9)

    def _ahead(self):
        """The stages to come."""
        return [
            stage
            for name, stage in self._stages.items()
            if name not in self.seconds and stage is not self.current
        ]

    def _planned(self, stage):
        """The seconds of a stage that has not begun."""
        if stage.is_measured:
            return stage.seconds
        guessed = sum(s.seconds for s in self._stages.values() if not s.is_measured)
        doubt = _DOUBT * guessed
        return stage.seconds * (self._taken + doubt) / max(self._expected + doubt, 1e-9)

    def _outlook(self, now):
        """Seconds that the current stage will have taken, and those of them that remain."""
        planned, done = self._planned(self.current), self.done
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
