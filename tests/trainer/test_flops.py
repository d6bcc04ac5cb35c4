import numpy as np
import pytest

from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.trainer.flops import step_flops

SIZES = {"num_layers": 2, "hidden_dim": 6, "intermediate_dim": 10, "vocabulary_size": 11}


@pytest.mark.parametrize("num_slots", [1, 4])
def test_products_with_weights_are_those_of_the_model(num_slots):
    backbone = TupeBackbone(11, 2, 2, 6, 10, position="none", dropout=0.0)
    model = TupeMaskedLM(backbone)

    def size(*parts):
        return sum(
            np.prod(weight.shape)
            for weight in backbone.trainable_weights
            if weight.path.endswith("kernel") and all(part in weight.path for part in parts)
        )

    in_head = np.prod(model.head.dense.kernel.shape) + np.prod(
        backbone.token_embedding.weights[0].shape
    )
    in_last = size("block_1", "feedforward")
    expected = 6 * 3 * (5 * (size("block_") - in_last) + num_slots * (in_last + in_head))
    # 3 passes, 2 operations of scores and of values, 3 rows, pairs, width, layers
    attention = 3 * 2 * 2 * 3 * 25 * 6 * 2
    flops = step_flops(**SIZES, batch_size=3, length=5, num_slots=num_slots)
    assert flops == expected + attention
    assert isinstance(flops, float)
    if num_slots == 4:  # by hand
        assert flops == 25920 + 19440 + 10800 + 7344
