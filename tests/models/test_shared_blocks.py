"""Factorised embeddings and blocks that layers share (ALBERT, ELECTRA)."""

import math

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import Case, encoder, inputs, outputs, random_ids
from tolerances import in_float64

from keras_tupe import TupeBackbone, TupeCausalLM, TupeMaskedLM
from keras_tupe.analysis import mean_attention_scores
from keras_tupe.layers import TokenEmbedding
from training.check.method.numpy_encoder import encode

LAYERS = {"num_layers": 4, "num_groups": 2, "embedding_dim": 6}
TUPE_R = Case("tupe_r")


@pytest.mark.parametrize("name", ["tupe_r", "bert_r", "sinusoidal", "shaw", "xlnet"])
def test_answers_are_those_of_the_equations(name):
    model = encoder(Case(name), layer_norm_epsilon=0.03, **LAYERS)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    real = given["padding_mask"].astype(bool)
    got, wanted = outputs(model, given), encode(model, given)
    np.testing.assert_allclose(got[0][real], wanted[0][real], rtol=0, atol=in_float64(1e-11))
    np.testing.assert_allclose(got[1], wanted[1], rtol=0, atol=in_float64(1e-11))
    where = np.array([[0, 3], [6, 2], [1, 1]])  # the last block at some positions
    some = ops.convert_to_numpy(model(given, output_positions=where)["sequence_output"])
    np.testing.assert_allclose(some, np.take_along_axis(got[0], where[..., None], 1), atol=1e-12)


def test_layers_of_a_group_have_one_block():
    model = encoder(TUPE_R, **LAYERS)
    names = [block.name for block in model.blocks]
    assert names == ["block_0", "block_0", "block_1", "block_1"]
    assert {w.path.split("/")[0] for w in model.weights if w.path.startswith("block")} == set(names)
    scores = mean_attention_scores(model, **inputs(random_ids(3, 7)))
    assert len(scores) == 4
    assert np.abs(scores[0] - scores[1]).max() > 1e-6  # the same block of other hidden states
    masked = TupeMaskedLM(model)  # predicts by the narrow embedding
    assert masked.head.dense.kernel.shape == (model.hidden_dim, 6)
    given = {**inputs(random_ids(2, 5)), "mask_positions": np.array([[1], [2]])}
    assert masked(given).shape == (2, 1, model.vocabulary_size)


def test_layers_of_one_block_drop_other_elements():
    block = TupeBackbone(13, 2, 2, 16, 16, "none", dropout=0.5, num_groups=1).blocks[0]
    x = np.ones((1, 9, 16), "float32")
    first, second = (ops.convert_to_numpy(block(x, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3


def test_albert_and_electra_have_the_weights_that_their_papers_count():
    given = {"position": "absolute", "embedding_dim": 128, "num_segments": 2}
    with keras.StatelessScope(initialize_variables=False):  # weights of a shape and no value
        albert = TupeBackbone(30_000, 12, 12, 768, 3072, num_groups=1, **given)
        electra = TupeBackbone(30_522, 12, 4, 256, 1024, **given)
    keras.utils.clear_session(free_memory=False)  # else the next model gives them values
    # (30,000 + 512 + 2) * 128 + 2 * 128: the embeddings and their normalization
    # 128 * 768 + 768: their projection
    # 4 * (768 * 768 + 768) + 2 * 768 * 3,072 + 3,072 + 768 + 4 * 768: one block
    # 768 * 768 + 768: the pooler, which ALBERT counts
    wanted = 3_906_048 + 99_072 + 7_087_872 + 590_592
    assert sum(math.prod(weight.shape) for weight in albert.weights) == wanted == 11_683_584
    # (30,522 + 512 + 2) * 128 + 2 * 128, and 128 * 256 + 256
    # 12 * (4 * (256 * 256 + 256) + 2 * 256 * 1,024 + 1,024 + 256 + 4 * 256): no pooler
    weights = [weight for weight in electra.weights if "pooled" not in weight.path]
    wanted = 3_972_864 + 33_024 + 12 * 789_760
    assert sum(math.prod(weight.shape) for weight in weights) == wanted == 13_483_008


def test_an_embedding_of_another_model_is_used_as_it_is():
    first = encoder(TUPE_R)
    config = {**first.get_config(), "name": "other"}
    second = TupeBackbone(**config, token_embedding=first.token_embedding)
    assert second.token_embedding is first.token_embedding
    again = TupeBackbone.from_config(second.get_config())
    assert again.token_embedding is not first.token_embedding


def test_impossible_sharing_is_refused():
    window = {"attention_pattern": "sliding_window", "pattern_options": {"window": 3, "every": 2}}
    for changes, words in (
        ({"num_groups": 2, **window}, "share a block must see the same tokens.*num_groups=2"),
        ({"token_embedding": TokenEmbedding(7, 8)}, "here 13 and 10.*Received: 7 and 8"),
        ({"token_embedding": 3}, "Received: int"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            TupeBackbone(13, 4, 2, 10, 8, **changes)
    with pytest.raises(ValueError, match="Received: .*embedding_dim=6"):
        TupeCausalLM(encoder(TUPE_R, attention_pattern="causal", embedding_dim=6))
