"""The fastest matrix product that a library does: what the share of the peak is a share of.

Runs in both environments, so each library is imported where it is used.
"""

from benchmarks.harness.process import serve
from benchmarks.training.batch import WARM_UP_STEPS


def prepare(job):
    """Returns one product of square matrices as a step, and nothing about it.

    Args:
        job: dictionary with `library` (`"tensorflow"` or `"torch"`), `precision` and `width`.
    """
    make = _torch if job["library"] == "torch" else _tensorflow
    product = make(job["width"], job["precision"])

    def step():
        product()
        return {}

    return step, {}


def flops(width):
    """Returns the operations of one product."""
    return 2 * width**3


def _torch(width, precision):
    import torch

    left, right = torch.rand(2, width, width).to(getattr(torch, precision))
    return lambda: torch.mm(left, right)


def _tensorflow(width, precision):
    import tensorflow as tf

    left, right = tf.unstack(tf.cast(tf.random.uniform((2, width, width)), precision))
    product = tf.function(lambda: tf.matmul(left, right)[0, 0])
    return lambda: product().numpy()


if __name__ == "__main__":
    serve(prepare, WARM_UP_STEPS)
