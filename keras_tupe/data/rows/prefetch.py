"""Batches made by threads ahead of their use, in order."""

import collections
import concurrent.futures
import contextlib


def prefetched(make_batch, start, count, *, threads=2, ahead=4):
    """Yields `make_batch(start)`, `make_batch(start + 1)`, ... `count` of them.

    Args:
        make_batch: function of a number, such as `Rows.batch`, that threads may call at once.
        start: the first number.
        count: how many.
        threads: that make batches. Defaults to 2.
        ahead: batches that are made or wait at most. Defaults to 4.

    Example:
        >>> list(prefetched(lambda number: number**2, start=3, count=4))
        [9, 16, 25, 36]
    """
    pool, waiting = concurrent.futures.ThreadPoolExecutor(threads), collections.deque()
    with contextlib.ExitStack() as stack:
        stack.callback(pool.shutdown, cancel_futures=True)
        for number in range(start, start + count):
            waiting.append(pool.submit(make_batch, number))
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
