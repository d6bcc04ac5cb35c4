"""The fastest matrix product that JAX does here. A process of its own: `benchmarks.gpu` starts it.

The product is repeated within one program, so that starting it is not what is measured.
"""

import time

import jax
import jax.numpy as jnp

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
    start = jnp.full((width, width), 1 / width, job["precision"])

    @jax.jit
    def products(left, right):
        return jax.lax.fori_loop(0, REPEATS, lambda _, x: x @ right, left)

    best = float("inf")
    for _ in range(ROUNDS + 1):  # the first compiles, and is never the fastest
        started = time.perf_counter()
        products(start, start).block_until_ready()
        best = min(best, time.perf_counter() - started)
    tick()
    return REPEATS * 2 * width**3 / best


if __name__ == "__main__":
    answer(work)
