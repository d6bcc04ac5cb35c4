"""How far a preparation is, and where its time went."""

import contextlib
import sys
import time

import tqdm

from training.command.tables import table

_MOMENT, _MINUTE = 0.1, 60  # seconds between two looks, in a terminal and without one


class Progress:
    """A bar of `tqdm` for each stage."""

    def __init__(self):
        self.seconds = {}  # of each stage that has ended

    @contextlib.contextmanager
    def stage(self, name, total=None, unit=" words"):
        """Yields the bar of a stage, whose `update` takes what was done of `total` units."""
        wait = _MOMENT if sys.stderr.isatty() else _MINUTE
        options = {"mininterval": wait, "maxinterval": max(wait, 10), "delay": wait}
        start = time.monotonic()
        with tqdm.tqdm(
            desc=name, total=total, unit=unit, unit_scale=True, dynamic_ncols=True, **options
        ) as bar:
            yield bar
        self.seconds[name] = time.monotonic() - start

    def profile(self, num_words):
        """Returns a table of where the time went."""
        whole = sum(self.seconds.values())
        rows = [
            [name, f"{seconds:.1f}", f"{seconds / whole:.0%}", f"{num_words / seconds:,.0f}"]
            for name, seconds in [*self.seconds.items(), ("all", whole)]
            if seconds >= 0.05
        ]
        return table(["stage", "seconds", "share", "words per second"], rows)
