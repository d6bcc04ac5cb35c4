"""Factorised embeddings and blocks that layers share (ALBERT, ELECTRA)."""

import math

import keras
import numpy as np
import pytest
from keras import ops
from position_cases import METHOD_NAMES, Case, by_kind, encoder, inputs, outputs, random_ids
from tolerances import in_float64

from keras_tupe import TupeBackbone, TupeCausalLM, TupeMaskedLM
from keras_tupe.analysis import mean_attention_scores
from keras_tupe.layers import TokenEmbedding
from training.check_method.numpy_encoder import encode

LAYERS = {"num_layers": 4, "num_groups": 2, "embedding_dim": 6}


def _count(weights):
    return sum(math.prod(weight.shape) for weight in weights)


@pytest.mark.parametrize("case", by_kind([Case(name) for name in METHOD_NAMES]))
def test_answers_are_those_of_the_equations(case):
    model = encoder(case, layer_norm_epsilon=0.03, **LAYERS)
    given = inputs(random_ids(3, 7), lengths=[7, 4, 1])
    real = given["padding_mask"].astype(bool)
    got, wanted = outputs(model, given), encode(model, given)
    np.testing.assert_allclose(got[0][real], wanted[0][real], rtol=0, atol=in_float64(1e-11))
    np.testing.assert_allclose(got[1], wanted[1], rtol=0, atol=in_float64(1e-11))


def test_layers_of_a_group_have_one_block():
    model = encoder(Case("tupe_r"), **LAYERS)
    names = [block.name for block in model.blocks]
    assert names == ["block_0", "block_0", "block_1", "block_1"]
    assert {w.path.split("/")[0] for w in model.weights if w.path.startswith("block")} == set(names)
    scores = mean_attention_scores(model, **inputs(random_ids(3, 7)))
    assert len(scores) == 4
    assert np.abs(scores[0] - scores[1]).max() > 1e-6  # the same block of other hidden states


def test_last_block_at_some_positions_is_that_of_all():
    model = encoder(Case("tupe_r"), **LAYERS)
    given = inputs(random_ids(3, 7))
    where = np.array([[0, 3], [6, 2], [1, 1]])
    some = model(given, output_positions=where)["sequence_output"]
    whole = outputs(model, given)[0]
    np.testing.assert_allclose(
        ops.convert_to_numpy(some), np.take_along_axis(whole, where[..., None], 1), atol=1e-12
    )


def test_a_masked_language_model_predicts_by_the_narrow_embedding():
    model = TupeMaskedLM(encoder(Case("tupe_r"), **LAYERS))
    assert model.head.dense.kernel.shape == (model.backbone.hidden_dim, 6)
    given = {**inputs(random_ids(2, 5)), "mask_positions": np.array([[1], [2]])}
    assert model(given).shape == (2, 1, model.backbone.vocabulary_size)


@pytest.mark.parametrize("name", ["tupe_r", "shaw"])
def test_presets_keep_the_sharing(name, tmp_path):
    model = encoder(Case(name), "float32", **LAYERS)
    model.save_to_preset(str(tmp_path))
    again = TupeBackbone.from_preset(str(tmp_path))
    assert (again.num_groups, again.embedding_dim) == (2, 6)
    given = inputs(random_ids(3, 7))
    for one, other in zip(outputs(model, given), outputs(again, given), strict=True):
        np.testing.assert_array_equal(one, other)


def test_layers_of_one_block_drop_other_elements():
    keras.utils.set_random_seed(0)
    model = TupeBackbone(13, 2, 2, 16, 16, "none", dropout=0.5, num_groups=1)
    block = model.blocks[0]
    x = np.ones((1, 9, 16), "float32")
    ones = np.ones((1, 9), "int32")
    first, second = (
        ops.convert_to_numpy(block(x, padding_mask=ones, training=True)) for _ in range(2)
    )
    assert np.abs(first - second).max() > 1e-3


def test_albert_and_electra_have_the_weights_that_their_papers_count():
    albert = TupeBackbone(
        30_000, 12, 12, 768, 3072, "absolute", embedding_dim=128, num_groups=1, num_segments=2
    )
    # (30,000 + 512 + 2) * 128 + 2 * 128: the embeddings and their normalization
    # 128 * 768 + 768: their projection
    # 4 * (768 * 768 + 768) + 2 * 768 * 3,072 + 3,072 + 768 + 4 * 768: one block
    # 768 * 768 + 768: the pooler, which ALBERT counts
    assert _count(albert.weights) == 3_906_048 + 99_072 + 7_087_872 + 590_592
    assert _count(albert.weights) == 11_683_584
    electra = TupeBackbone(30_522, 12, 4, 256, 1024, "absolute", embedding_dim=128, num_segments=2)
    # (30,522 + 512 + 2) * 128 + 2 * 128, and 128 * 256 + 256
    # 12 * (4 * (256 * 256 + 256) + 2 * 256 * 1,024 + 1,024 + 256 + 4 * 256): no pooler
    weights = [weight for weight in electra.weights if "pooled" not in weight.path]
    assert _count(weights) == 3_972_864 + 33_024 + 12 * 789_760
    assert _count(weights) == 13_483_008


def test_an_embedding_of_another_model_is_used_as_it_is():
    first = encoder(Case("tupe_r"))
    config = first.get_config()
    second = TupeBackbone(**{**config, "name": "other"}, token_embedding=first.token_embedding)
    assert second.token_embedding is first.token_embedding
    again = TupeBackbone.from_config(second.get_config())
    assert again.token_embedding is not first.token_embedding


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_groups": 3}, "must divide `num_layers`.*num_groups=3, num_layers=4"),
        ({"num_groups": 0}, "num_groups"),
        ({"embedding_dim": -1}, "embedding_dim"),
        (
            {
                "num_groups": 2,
                "attention_pattern": "sliding_window",
                "pattern_options": {"window": 3, "every": 2},
            },
            "share a block must see the same tokens.*num_groups=2",
        ),
        (
            {"token_embedding": lambda: TokenEmbedding(7, 8)},
            "here 13 and 10.*Received: 7 and 8",
        ),
    ],
)
def test_impossible_sharing_is_refused(changes, message):
    changes = {name: value() if callable(value) else value for name, value in changes.items()}
    with pytest.raises(ValueError, match=message):
        TupeBackbone(13, 4, 2, 10, 8, **changes)
    with pytest.raises(TypeError, match="Received: int"):
        TupeBackbone(13, 4, 2, 10, 8, token_embedding=3)


def test_a_causal_model_needs_its_wide_embedding():
    backbone = encoder(Case("tupe_r"), attention_pattern="causal", embedding_dim=6)
    with pytest.raises(ValueError, match="Received: embedding_dim=6"):
        TupeCausalLM(backbone)
