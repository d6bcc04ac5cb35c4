"""The progress of a run: a moving bar in a terminal, a line now and then in a log file."""

import collections
import contextlib
import sys
import time

import tqdm

WINDOW_SECONDS = 30
LINE_SECONDS = 60


class Progress:
    """Shows steps, loss, speed, FLOP utilisation and the time that is left.

    Speed is that of the last half minute of training: what is inside of `paused()` does not count,
    nor what was before the first `update`, where things are compiled. The time left takes pauses as
    they were. Tokens and FLOPs of a step, and the peak in FLOP/s, are those of all replicas
    together; a peak that is beaten was measured on a busy machine, and its share is unknown.
    """

    def __init__(
        self,
        total_steps,
        start_step=0,
        *,
        tokens_per_step,
        flops_per_step=0,
        peak_flops=None,
        stream=None,
        clock=time.monotonic,
    ):
        self.total_steps, self.tokens_per_step = total_steps, tokens_per_step
        self.flops_per_step, self.peak_flops = flops_per_step, peak_flops
        self._clock, self._stream = clock, sys.stderr if stream is None else stream
        self._start = self._last_line = clock()
        self._first = None  # (time, step) of the first update
        self._paused_seconds = 0.0
        self._window = collections.deque()  # (seconds of training, step)
        self._loss = None
        self._bar = tqdm.tqdm(
            total=total_steps,
            initial=start_step,
            disable=None,
            file=self._stream,
            dynamic_ncols=True,
            bar_format="{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} steps{postfix}",
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._bar.close()

    @property
    def seconds(self):
        """Seconds since the start, all included."""
        return self._clock() - self._start

    @property
    def steps_per_second(self):
        """Steps per second of training, recently; `None` before the second update."""
        if len(self._window) < 2:
            return None
        (start, first), (end, last) = self._window[0], self._window[-1]
        return (last - first) / max(end - start, 1e-9)

    @property
    def tokens_per_second(self):
        """Tokens per second of training, recently; `None` before the second update."""
        rate = self.steps_per_second
        return None if rate is None else rate * self.tokens_per_step

    @property
    def flop_utilisation(self):
        """Share of the peak that the model's own operations reach; `None` if unknown."""
        rate = self.steps_per_second
        if rate is None or self.peak_flops is None:
            return None
        share = rate * self.flops_per_step / self.peak_flops
        return share if share <= 1 else None

    def update(self, step, loss=None):
        """Says that `step` steps are done, not fewer than before, and the loss if it is known."""
        now = self._clock()
        self._loss = self._loss if loss is None else float(loss)
        self._first = self._first or (now, step)
        self._window.append((now - self._paused_seconds, step))
        # two stay, however slow the steps are
        while len(self._window) > 2 and self._window[-1][0] - self._window[1][0] > WINDOW_SECONDS:
            self._window.popleft()
        if not self._bar.disable:
            self._bar.set_postfix_str(self._facts(now, step), refresh=False)
            self._bar.update(step - self._bar.n)
        elif now - self._last_line >= LINE_SECONDS or step >= self.total_steps:
            self._last_line = now
            share = step / self.total_steps
            facts = self._facts(now, step)
            self.say(f"step {step:,} of {self.total_steps:,} ({share:.0%}): {facts}")

    @contextlib.contextmanager
    def paused(self):
        """Leaves the time of the block out of the speed: validation, saving."""
        start = self._clock()
        try:
            yield
        finally:
            self._paused_seconds += self._clock() - start

    def say(self, text):
        """Writes a line of its own, above the bar."""
        if self._bar.disable:
            print(text, file=self._stream, flush=True)
        else:
            self._bar.write(text, file=self._stream)

    def _facts(self, now, step):
        parts = [] if self._loss is None else [f"loss {self._loss:.3f}"]
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
            if self.peak_flops is not None:
                share = self.flop_utilisation
                parts.append(f"{'?' if share is None else format(share, '.0%')} of peak FLOP/s")
        start, first = self._first
        if step > first:
            left = (self.total_steps - step) * (now - start) / (step - first)
            parts.append(f"{tqdm.tqdm.format_interval(left)} left")
        return ", ".join(parts)
