import keras
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


def test_operations_that_tensorflow_counts_are_close(tensorflow):
    from tensorflow.python.profiler import model_analyzer, option_builder

    sizes = {"num_layers": 2, "hidden_dim": 32, "intermediate_dim": 64, "vocabulary_size": 97}
    model = TupeMaskedLM(TupeBackbone(97, 2, 2, 32, 64, position="none", dropout=0.0))
    ids = keras.ops.ones((4, 16), "int32")
    inputs = {
        "token_ids": ids,
        "padding_mask": ids,
        "mask_positions": keras.ops.ones((4, 3), "int32"),
    }
    graph = tensorflow.function(lambda: model(inputs, training=True)).get_concrete_function().graph
    options = option_builder.ProfileOptionBuilder.float_operation()
    options["output"] = "none"
    counted = model_analyzer.profile(graph, options=options).total_float_ops
    forward = step_flops(**sizes, batch_size=4, length=16, num_slots=3) / 3
    assert 1.0 <= counted / forward < 1.3  # the rest: normalizations, softmax, GELU, biases
