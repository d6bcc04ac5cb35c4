"""The fastest matrix product that a backend does here. A process of its own.

The product is repeated within one program, so that starting it is not what is measured.
"""

import time

import keras
from keras import ops

from benchmarks.harness.process import answer

REPEATS, ROUNDS = 10, 7


def work(job, tick):
    """Returns operations per second of the fastest round.

    Args:
        job: dictionary with `precision` and `width`.
        tick: called at the end.
    """
    width = job["width"]
    # rows that sum up to 1, so that repeated products neither grow nor vanish
    start = ops.full((width, width), 1 / width, job["precision"])

    def products(left, right):
        return ops.fori_loop(0, REPEATS, lambda _, x: ops.matmul(x, right), left)

    if keras.backend.backend() == "jax":
        import jax

        products = jax.jit(products)
    else:
        import tensorflow as tf

        products = tf.function(products, jit_compile=True)

    best = float("inf")
    for _ in range(ROUNDS + 1):  # the first compiles, and is never the fastest
        started = time.perf_counter()
        float(ops.cast(products(start, start)[0, 0], "float32"))  # waits for it
        best = min(best, time.perf_counter() - started)
    tick()
    return REPEATS * 2 * width**3 / best


if __name__ == "__main__":
    answer(work)
