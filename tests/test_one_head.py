"""One attention head: products that TensorFlow's oneDNN kernels answer wrongly are not asked for.

A batch of matrices of shape (batch, 1, rows, dim), batch > 1, times one matrix, broadcast: for more
than 16 rows in all, and in float32 and below, TensorFlow 2.21 returns on CPUs what was in memory,
and writes beyond its own, so that the process may abort. Here the first is refused before it runs.
"""

import functools
import math

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import CASES, Case, inputs, random_ids, scramble

from keras_tupe import TupeBackbone
from keras_tupe.layers import Block, key_distances, query_distances

REPORTED = Case("shaw", (("k", 2), ("share_heads", True)))


@pytest.fixture
def refused(tensorflow, monkeypatch):
    """Fails a test that asks for such a product; returns how many products of batches ran."""
    from tensorflow.python.ops import gen_math_ops

    calls = []

    def checked(product, x, y, *args, **kwargs):
        batch, other = x.shape[:-2].as_list(), y.shape[:-2].as_list()
        calls.append((batch, other))
        is_wrong = len(batch) == 2 and batch[0] != 1 and batch[1] == 1 and math.prod(other) == 1
        assert not is_wrong, f"{x.shape} times {y.shape}"
        return product(x, y, *args, **kwargs)

    for name in ("batch_mat_mul", "batch_mat_mul_v2", "batch_mat_mul_v3"):
        product = functools.partial(checked, getattr(gen_math_ops, name))
        monkeypatch.setattr(gen_math_ops, name, product)
    return calls


def train_eagerly(case, key_dim, dtype, length=7):
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": key_dim, "intermediate_dim": 3}
    model = TupeBackbone(23, **sizes, position=case.name, position_options=dict(case.options),
                         dropout=0.0, max_sequence_length=17, dtype=dtype)  # fmt: skip
    scramble(model.weights)
    model.compile(keras.optimizers.SGD(0.1), loss="mse", run_eagerly=True)
    shapes = {"sequence_output": (3, length, key_dim), "pooled_output": (3, key_dim)}
    targets = {name: np.ones(shape) for name, shape in shapes.items()}
    assert np.isfinite(model.train_on_batch(inputs(random_ids(3, length)), targets)).all()


def test_the_spy_sees_the_product(refused, tensorflow):
    with pytest.raises(AssertionError, match=r"\(3, 1, 7, 2\) times \(1, 2, 5\)"):
        tensorflow.matmul(tensorflow.ones((3, 1, 7, 2)), tensorflow.ones((1, 2, 5)))
    tensorflow.matmul(tensorflow.ones((3, 2, 7, 2)), tensorflow.ones((1, 2, 5)))
    assert len(refused) == 2


def test_shaw_with_one_head_of_size_one_in_half_precision(refused):
    train_eagerly(REPORTED, 1, "mixed_bfloat16")
    assert refused


@pytest.mark.parametrize("products", [query_distances, key_distances])
@pytest.mark.parametrize("length", [7, 139])
def test_products_of_one_head_are_right_in_float32(refused, products, length):
    rng = np.random.default_rng(0)
    vectors, table = rng.normal(size=(1, 3, length, 5)), rng.normal(size=(9, 1, 5))
    place = np.arange(length)
    rows = np.clip(place - place[:, None], -4, 4) + 4
    equation = "hbtd,tsd->hbts" if products is query_distances else "hbsd,tsd->hbts"
    wanted = np.einsum(equation, vectors, table[:, 0][rows])
    block, table = Block(0, length, 0, length), table.transpose(1, 2, 0)
    got = products(*(ops.convert_to_tensor(x, "float32") for x in (vectors, table)), block)
    np.testing.assert_allclose(ops.convert_to_numpy(got), wanted, rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("key_dim", [1, 2, 5])
@pytest.mark.parametrize("case", [REPORTED, *CASES], ids=str)
def test_no_method_asks_for_the_product(case, key_dim, refused):
    if (case.name, key_dim) != ("rope", 1):  # which rotates pairs
        train_eagerly(case, key_dim, "float32", length=5)
