"""The named settings of ELECTRA make the models of its paper."""

import types

import keras

from keras_tupe import TupeBackbone
from keras_tupe.models import generator_sizes
from training.command.settings import parse
from training.pretrain import model
from training.pretrain.settings import Settings


def arguments_of(config, tmp_path):
    """Returns the settings of a file, and what the first encoder would be made with."""
    (tmp_path / "rows").mkdir()
    folders = ["--data", str(tmp_path / "rows"), "--out", str(tmp_path / "run")]
    settings = parse(Settings, [*folders, "--config", config])
    rows = types.SimpleNamespace(vocabulary=types.SimpleNamespace(size=30_522), length=128)
    found = model.backbone_arguments(settings, rows)
    return settings, {**found, "position": settings.position}


def count(arguments):
    """Returns the number of weights of an encoder, without its pooler."""
    with keras.StatelessScope(initialize_variables=False):  # weights of a shape and no value
        layers = TupeBackbone(**arguments).layers
    found = sum(layer.count_params() for layer in layers if layer.name != "pooled_dense")
    keras.utils.clear_session(free_memory=False)  # else the next model gives them values
    return found


def test_electra_small_is_that_of_the_paper(tmp_path):
    settings, arguments = arguments_of("electra-small", tmp_path)
    # (30,522 + 512) * 128 + 2 * 128, and 128 * 256 + 256, and 12 blocks; see
    # test_shared_blocks.py; the paper's has two rows of segments more, of which nothing is learned
    assert count(arguments) == 13_483_008 - 2 * 128
    assert count({**arguments, "num_segments": 2}) == 13_483_008
    sizes = generator_sizes(arguments, settings.generator_share)
    assert sizes == {
        "num_heads": 1,
        "hidden_dim": 64,
        "intermediate_dim": 256,
        "embedding_dim": 128,
    }
    record = settings.objective_record()
    assert record.num_predictions(128, settings.objective_options()) == 20


def test_electra_base_has_a_generator_of_a_third(tmp_path):
    settings, arguments = arguments_of("tupe-electra-base", tmp_path)
    assert (arguments["num_layers"], arguments["hidden_dim"]) == (12, 768)
    assert arguments["embedding_dim"] is None
    sizes = generator_sizes(arguments, settings.generator_share)
    assert sizes == {
        "num_heads": 4,
        "hidden_dim": 256,
        "intermediate_dim": 1024,
        "embedding_dim": 768,
    }
    assert settings.position == "tupe_r"
