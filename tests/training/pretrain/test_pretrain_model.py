"""The models that runs begin with: of named settings, of one seed, of a preset."""

import keras
import numpy as np
import pretrain_cases as cases
import pytest

from keras_tupe import TupeBackbone, TupeMaskedLM, data
from keras_tupe.models import generator_sizes
from training.command.settings import parse
from training.pretrain import model as models
from training.pretrain.settings import Settings


def count(arguments):
    """Returns the number of weights of an encoder, without its pooler."""
    with keras.StatelessScope(initialize_variables=False):  # weights of a shape and no value
        layers = TupeBackbone(**arguments).layers
    found = sum(layer.count_params() for layer in layers if layer.name != "pooled_dense")
    keras.utils.clear_session(free_memory=False)  # else the next model gives them values
    return found


SMALL = {"num_layers": 12, "hidden_dim": 256, "embedding_dim": 128}
BASE = {"num_layers": 12, "hidden_dim": 768, "embedding_dim": None}
GENERATORS = {  # heads, width, width of the feed-forward network, width of the embeddings
    "electra-small": (SMALL, (1, 64, 256, 128)),
    "tupe-electra-base": (BASE, (4, 256, 1024, 768)),
}


@pytest.mark.parametrize("config", GENERATORS)
def test_the_named_settings_of_electra_make_the_models_of_its_paper(config, tmp_path):
    (tmp_path / "rows").mkdir()
    folders = ["--data", str(tmp_path / "rows"), "--out", str(tmp_path / "run")]
    settings = parse(Settings, [*folders, "--config", config])
    arguments = settings.trunk(vocabulary_size=30_522, length=128)
    sizes, generator = GENERATORS[config]
    assert {name: arguments[name] for name in sizes} == sizes
    found = generator_sizes(arguments, settings.generator_share)
    names = ("num_heads", "hidden_dim", "intermediate_dim", "embedding_dim")
    assert found == dict(zip(names, generator, strict=True))
    if config == "tupe-electra-base":
        assert settings.position == "tupe_r"
        return
    # (30,522 + 512) * 128 + 2 * 128, and 128 * 256 + 256, and 12 blocks; see
    # test_shared_blocks.py; the paper's has two rows of segments more, of which nothing is learned
    arguments["position"] = settings.position
    assert count(arguments) == 13_483_008 - 2 * 128
    assert count({**arguments, "num_segments": 2}) == 13_483_008
    record = settings.objective_record()
    assert record.num_predictions(128, settings.objective_options()) == 20


def test_new_models_of_one_seed_have_the_same_trunk(rows, tmp_path):
    prepared = data.PreparedRows(rows)
    found = []
    for position in ("absolute", "t5"):
        words = cases.arguments(
            rows, tmp_path / "run", position=position, objective="seq2seq", dropout=0.0
        )
        found.append(models.make_model(parse(Settings, words), prepared))
    ours, theirs = ({w.path: w for w in one.weights} for one in found)
    shared = [path for path in ours if path in theirs]
    assert len(shared) > 50
    for path in shared:
        np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)


def test_a_preset_is_trained_with_the_dropout_of_the_settings(rows, tmp_path):
    pieces = (rows / "vocabulary.txt").read_text().splitlines()
    folder = cases.save_preset(tmp_path / "preset", pieces, head_activation="gelu_approximate")
    settings = Settings(preset=str(folder), size=None, dropout=0.37)
    model = models._from_preset(settings, data.PreparedRows(rows, "train"))
    assert model.backbone.dropout == 0.37
    assert model.head_activation == "gelu_approximate"
    kept = TupeMaskedLM.from_preset(folder, preprocessor=None)
    for weight, old in zip(model.weights, kept.weights, strict=True):
        np.testing.assert_array_equal(weight, old)
