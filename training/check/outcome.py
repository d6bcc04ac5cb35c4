"""A promise, how it is checked, and what comes of that."""

import contextlib
import dataclasses
import time

import keras

from training.check.compare import BrokenPromiseError

KEPT, BROKEN, LEFT_OUT = "kept", "BROKEN", "left out"


class LeftOutError(Exception):
    """A promise that is not given; the message says why."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a check.

    Attributes:
        promise: what was checked, in a few words.
        result: `KEPT`, `BROKEN` or `LEFT_OUT`.
        seconds: how long it took.
        count: number of cases that were checked.
        reason: a sentence, for the two others.
    """

    promise: str
    result: str
    seconds: float
    count: int
    reason: str = ""


def _said(case, error):
    """Returns what an error says, in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, BrokenPromiseError):
        return text
    return f"{type(error).__name__}: {text}"


@dataclasses.dataclass(frozen=True)
class Check:
    """A promise, and how to check it.

    Attributes:
        promise: in a few words.
        run: function of a case, which raises if the promise is broken.
        cases: those that it is checked with.
        tensorflow: whether it needs Keras to run on TensorFlow.
        floatx: `"float64"` where Keras's default type must be that.
        reason: why there are no cases, where there are none.
        said: function of a case and its error -> a sentence.
    """

    promise: str
    run: object
    cases: tuple
    tensorflow: bool = False
    floatx: str | None = None
    reason: str = ""
    said: object = _said

    def outcome(self):
        """Returns the `Outcome`; the first case that breaks the promise ends it."""
        start = time.perf_counter()
        if self.tensorflow and keras.backend.backend() != "tensorflow":
            return Outcome(self.promise, LEFT_OUT, 0.0, 0, "Keras does not run on TensorFlow")
        if not self.cases:
            return Outcome(self.promise, LEFT_OUT, 0.0, 0, self.reason)
        result, reason = KEPT, ""
        for count, case in enumerate(self.cases, 1):
            try:
                with _floatx(self.floatx):
                    self.run(case)
            except LeftOutError as error:
                result, reason, count = LEFT_OUT, str(error), 0
                break
            except Exception as error:
                result, reason = BROKEN, self.said(case, error)
                break
        return Outcome(self.promise, result, time.perf_counter() - start, count, reason)


@contextlib.contextmanager
def _floatx(dtype):
    """Inside, Keras's default type and policy are `dtype`, if it is one."""
    if dtype is None:
        yield
        return
    default, policy = keras.config.floatx(), keras.config.dtype_policy()
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)
    try:
        yield
    finally:
        keras.config.set_floatx(default)
        keras.config.set_dtype_policy(policy)
