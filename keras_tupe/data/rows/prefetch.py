"""Batches made by threads ahead of their use, in order."""

import collections
import concurrent.futures
import contextlib

_THREADS, _AHEAD = 2, 4  # that make batches; batches that are made or wait at most


def prefetched(make_batch, start, count):
    """Yields `make_batch(start)`, `make_batch(start + 1)`, ... `count` of them.

    Args:
        make_batch: function of a number, such as `Rows.batch`, that threads may call at once.
        start: the first number.
        count: how many.

    Example:
        >>> list(prefetched(lambda number: number**2, start=3, count=4))
        [9, 16, 25, 36]
    """
    pool, waiting = concurrent.futures.ThreadPoolExecutor(_THREADS), collections.deque()
    with contextlib.ExitStack() as stack:
        stack.callback(pool.shutdown, cancel_futures=True)
        for number in range(start, start + count):
            waiting.append(pool.submit(make_batch, number))
            if len(waiting) >= _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
