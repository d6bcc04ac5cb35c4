"""Parameters of the published sizes, written out by hand."""

import dataclasses
import functools

import keras
import pytest

from keras_tupe.models import SIZES, TupeBackbone, TupeSeq2SeqBackbone

WEIGHTS = 768 * 768
# query, key, value, output; feed-forward; two layer normalizations
BLOCK = 4 * (WEIGHTS + 768) + (768 * 3072 + 3072) + (3072 * 768 + 768) + 2 * 2 * 768
BASE = 30522 * 768 + 2 * 768 + 12 * BLOCK + (WEIGHTS + 768)  # embeddings, norm, blocks, pooler
PROJECTIONS, NORM, PLACES = 2 * WEIGHTS, 2 * 768, 512 * 768
UNTIED = PROJECTIONS + PLACES + NORM
LAYERS, HEADS, LENGTH, DIM = 12, 12, 512, 64  # of BERT-base
BUCKETS, DISTANCES = 32 * HEADS, 2 * LENGTH - 1


@functools.cache
def parameters_by_layer(name, num_layers=2, vocabulary_size=7, **options):
    """Returns the number of parameters of each layer of an encoder as wide as base."""
    size = {**dataclasses.asdict(SIZES["base"]), "num_layers": num_layers}
    with keras.StatelessScope(initialize_variables=False):  # weights of a shape and no value
        model = TupeBackbone(vocabulary_size, **size, position=name, position_options=options)
    found = {layer.name: layer.count_params() for layer in model.layers}
    keras.utils.clear_session(free_memory=False)  # else the next model gives them values
    return found


def added_by(name, **options):
    """Returns what a method adds to the trunk: the same at any depth and vocabulary."""
    trunk = 7 * 768 + NORM + 2 * BLOCK + (WEIGHTS + 768)
    return sum(parameters_by_layer(name, **options).values()) - trunk


def test_base_without_positions_has_the_parameters_of_bert():
    assert BLOCK == 7_087_872
    absolute_table, segment_table = 512 * 768, 2 * 768
    assert BASE + absolute_table + segment_table == 109_482_240  # BERT-base as published
    assert sum(parameters_by_layer("none", 12, 30522).values()) == BASE
    assert added_by("none") == 0


@pytest.mark.parametrize(
    ("name", "options", "per_layer", "once"),
    [
        ("absolute", {}, 0, PLACES),
        ("sinusoidal", {}, 0, 0),
        ("t5", {}, 0, BUCKETS),
        ("t5", {"cls": "untied"}, 0, BUCKETS + 2 * HEADS),
        ("bert_r", {}, 0, PLACES + BUCKETS),
        ("tupe_a", {}, 0, UNTIED + 2 * 768),
        ("tupe_r", {}, 0, UNTIED + 2 * 768 + BUCKETS),
        ("tupe_a_tied_cls", {}, 0, UNTIED),
        ("tupe_r_tied_cls", {}, 0, UNTIED + BUCKETS),
        ("bert_ad", {}, 0, UNTIED),
        # released: U^Q and U^K have biases, the relative part a theta of its own
        ("tupe_r", {"variant": "released"}, 0, UNTIED + 4 * 768 + BUCKETS + 2 * HEADS),
        ("qkr_1", {}, HEADS * LENGTH, 0),
        ("qkr_2", {}, HEADS * DISTANCES, 0),
        ("qkr_3", {}, HEADS * DISTANCES * DIM, 0),
        ("qkr_4", {}, HEADS * DISTANCES * DIM, 0),
        ("shaw", {}, HEADS * DISTANCES * DIM, 0),
        ("qkr_4", {"share_heads": True}, DISTANCES * DIM, 0),
        ("qkr_4", {"share_layers": True}, 0, HEADS * DISTANCES * DIM),
        ("qkr_1", {"k": 64}, HEADS * 65, 0),
        ("qkr_4", {"k": 64}, HEADS * 129 * DIM, 0),
        ("qkr_4", {"cls": "untied"}, HEADS * (DISTANCES + 2) * DIM, 0),
        ("qkr_2", {"cls": "untied"}, HEADS * (DISTANCES + 2), 0),
        ("diet_rel", {}, HEADS * DISTANCES, 0),
        ("xlnet", {}, WEIGHTS + 2 * 768, 0),
        ("xlnet_no_bias", {}, WEIGHTS, 0),
        ("xlnet", {"cls": "untied"}, WEIGHTS + 4 * 768, 0),
        ("deberta", {}, 2 * WEIGHTS, 2 * PLACES),
        ("deberta", {"variant": "released"}, 2 * WEIGHTS + 768, 2 * PLACES),
        ("deberta", {"cls": "untied"}, 2 * WEIGHTS, 2 * PLACES + 2 * 768),
        ("rope", {"cls": "untied"}, 0, 0),
        ("alibi", {}, 0, 0),
        ("alibi", {"cls": "untied"}, 0, 2 * HEADS),
        ("alibi", {"learned": True}, 0, HEADS),
        ("alibi", {"learned": True, "sides": 2}, 0, 2 * HEADS),
        ("kerple", {}, 0, 2 * HEADS),
        ("kerple", {"kernel": "power", "cls": "untied"}, 0, 4 * HEADS),
        ("sandwich", {}, 0, 0),
        ("fire", {}, 0, 2 * 32 + 32 * HEADS + 2),
        ("data_dependent_alibi", {}, 2 * (768 + 1) * HEADS, 0),
        ("pope", {}, 768, 0),
        ("free_table", {}, 0, HEADS * LENGTH * LENGTH + 2 * HEADS),
        ("diet_abs", {}, 0, 2 * HEADS * LENGTH * 64),
        ("diet_abs", {"rank": 8}, 0, 2 * HEADS * LENGTH * 8),
        ("t5_low_rank", {}, 0, UNTIED + 2 * 768 + 257 * 768 + 2 * WEIGHTS),
    ],
)
def test_a_method_adds_what_the_formulas_say(name, options, per_layer, once):
    assert added_by(name, **options) == 2 * per_layer + once


def test_tables_and_projections_of_base_have_the_published_sizes():
    assert LAYERS * HEADS * LENGTH == 73_728
    assert LAYERS * HEADS * DISTANCES == 147_312
    assert LAYERS * HEADS * DISTANCES * DIM == 9_427_968
    assert LAYERS * DISTANCES * DIM == 785_664
    assert PROJECTIONS == 1_179_648  # in one layer that all blocks share
    layers = parameters_by_layer("tupe_a", 12)
    assert layers["position_bias"] == UNTIED + 2 * 768
    assert [count for name, count in layers.items() if name.startswith("block_")] == [BLOCK] * 12


def test_the_original_transformer_has_its_parameters():
    attention = 4 * (512 * 512 + 512)  # query, key, value, output, with biases
    feed_forward, norm = (512 * 2048 + 2048) + (2048 * 512 + 512), 2 * 512
    # one embedding for sources, targets and the output layer; blocks of encoder and decoder;
    # no position table: sine and cosine; no layer normalization of embeddings
    expected = 37_000 * 512 + 6 * (3 * attention + 2 * feed_forward + 5 * norm)
    biases_of_attention = (6 + 2 * 6) * 4 * 512  # which the original lacks
    assert expected - biases_of_attention == 63_045_632  # about the published 65 million
    sizes = dataclasses.asdict(SIZES["transformer_base"])
    given = {"position": "sinusoidal", "normalize_embeddings": False, "scale_embeddings": True}
    with keras.StatelessScope(initialize_variables=False):
        count = TupeSeq2SeqBackbone(37_000, **sizes, **given).count_params()
    keras.utils.clear_session(free_memory=False)
    assert count == expected == 63_082_496
