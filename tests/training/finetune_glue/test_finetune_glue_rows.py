"""From files to tokens and targets, from outputs to scores; and the model between them."""

import shutil

import glue_cases as cases
import keras
import numpy as np
import pytest

from keras_tupe import TupeTokenizer
from keras_tupe.data import GLUE_TASKS
from training.finetune_glue.data import read_tasks, shuffled_labels, tokenize
from training.finetune_glue.scores import constant_scores, predictions, scores, targets
from training.finetune_glue.settings import Settings
from training.presets.encoder import Encoder
from training.presets.folder import preset_digest


@pytest.fixture(scope="module")
def tokenizer():
    return TupeTokenizer(cases.WORDS)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return cases.write_tasks(tmp_path_factory.mktemp("data"), "mnli", "stsb", test=5)


def read(data, *tasks, **options):
    settings = Settings(data=str(data), check_counts=False, **options)
    return read_tasks(settings, tasks)


# === Rows ===


def test_a_task_has_its_columns_and_its_test_sets_on_request(data):
    found = read(data, "mnli", "stsb")
    assert list(found["mnli"].labeled) == ["mnli_m", "mnli_mm"]
    assert found["mnli"].test == {}
    found = read(data, "mnli", submission=True)["mnli"]
    assert [len(found.test[name].indices) for name in ("mnli_m", "mnli_mm")] == [5, 5]
    assert found.test["mnli_m"].labels is None


def test_a_part_of_the_training_rows_is_always_the_same(data):
    whole = read(data, "stsb")["stsb"]
    part, again = (read(data, "stsb", max_train_rows=50)["stsb"] for _ in range(2))
    assert part.train.texts == again.train.texts
    assert (len(part.train.labels), part.all_rows) == (50, 160)
    assert sorted(part.train.indices) == list(part.train.indices)
    for place, index in enumerate(part.train.indices):
        assert part.train.texts[1][place] == whole.train.texts[1][index]
        assert part.train.labels[place] == whole.train.labels[index]
    assert list(part.train.indices) != list(range(50))
    assert part.labeled["stsb"].indices.tolist() == whole.labeled["stsb"].indices.tolist()
    assert part.digest() != whole.digest()


def test_the_hash_of_rows_tells_texts_labels_and_their_places_apart(data):
    one, other = read(data, "stsb")["stsb"], read(data, "stsb")["stsb"]
    assert one.digest() == other.digest()
    other.train.labels[3] += 1
    assert one.digest() != other.digest()
    other = read(data, "stsb")["stsb"]
    first, second = other.train.texts
    first[0], second[0] = second[0], first[0]
    assert one.digest() != other.digest()


def test_bad_lines_are_left_out_on_request_only(tmp_path):
    path = cases.write_split(tmp_path, "stsb", "train", 6)
    cases.write_split(tmp_path, "stsb", "validation", 6)
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace(".000", ".0o0")
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="score of STS-B must be a number from 0 to 5") as error:
        read(tmp_path, "stsb")
    assert "line 4" in str(error.value)
    found = read(tmp_path, "stsb", skip_bad=True)["stsb"]
    assert len(found.train.labels) == 5
    assert len(found.skipped) == 1
    assert "line 4" in found.skipped[0]


# === Tokens ===


def test_tokens_have_no_padding_and_cut_rows_are_counted(tokenizer):
    texts = ["film story", "film " * 30, "film " * 6, "film " * 7]
    found = tokenize(tokenizer, (texts,), 8, segments=False)
    assert [len(row) for row in found.token_ids] == [4, 8, 8, 8]
    assert found.num_cut == 2  # [CLS] + 6 + [SEP] just fits
    assert found.segment_ids is None
    film, story = cases.WORDS.index("film"), cases.WORDS.index("story")
    assert found.token_ids[0].tolist() == [2, film, story, 3]
    assert all(row.dtype == np.int32 for row in found.token_ids)


def test_pairs_are_cut_in_turn_and_have_segments_where_the_model_has(tokenizer):
    found = tokenize(tokenizer, (["film " * 9, "film"], ["story", "plot"]), 8, segments=True)
    film, story, plot = (cases.WORDS.index(word) for word in ("film", "story", "plot"))
    assert found.token_ids[0].tolist() == [2, film, film, film, film, 3, story, 3]
    assert found.token_ids[1].tolist() == [2, film, 3, plot, 3]
    assert found.segment_ids[0].tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert found.segment_ids[1].tolist() == [0, 0, 0, 1, 1]
    assert found.num_cut == 1


def test_many_texts_are_the_same_as_few(tokenizer):
    texts = [" ".join(cases.FILLERS[: 1 + number % 6]) for number in range(1100)]
    found = tokenize(tokenizer, (texts,), 6, segments=False)
    assert len(found.token_ids) == 1100
    for number in (0, 1023, 1024, 1099):
        alone = tokenize(tokenizer, ([texts[number]],), 6, segments=False)
        assert found.token_ids[number].tolist() == alone.token_ids[0].tolist()
    assert found.num_cut == sum(len(text.split()) > 4 for text in texts)


# === Labels and scores ===


def test_shuffled_labels_are_the_same_ones_in_another_order_for_each_seed():
    labels = np.arange(50) % 3
    kept = labels.copy()
    one, again, other = (shuffled_labels(labels, seed) for seed in (1, 1, 2))
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()
    assert one.tolist() != labels.tolist()
    assert sorted(one) == sorted(labels)
    assert labels.tolist() == kept.tolist()


def test_scores_of_0_to_5_are_trained_as_0_to_1():
    task = GLUE_TASKS["stsb"]
    labels = np.array([0.0, 2.5, 5.0], "float32")
    made = targets(task, labels)
    assert made.tolist() == [[0.0], [0.5], [1.0]]
    assert predictions(task, made).tolist() == labels.tolist()
    classes = np.array([1, 0], "int32")
    assert targets(GLUE_TASKS["rte"], classes) is classes
    assert targets(task, None) is None


def test_the_highest_output_is_the_prediction():
    outputs = [[0.1, 0.2, -1.0], [3.0, 3.0, 2.0]]
    assert predictions(GLUE_TASKS["mnli"], outputs).tolist() == [1, 0]


def test_all_scores_of_a_task_are_percent():
    found = scores(GLUE_TASKS["mrpc"], np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    assert found == {"accuracy": 75.0, "f1": pytest.approx(200 / 3)}
    found = scores(GLUE_TASKS["cola"], np.array([1, 1, 0, 0]), np.array([1, 1, 0, 0]))
    assert found == {"matthews": 100.0, "accuracy": 100.0}
    labels = np.array([0.0, 1.0, 5.0])
    assert scores(GLUE_TASKS["stsb"], labels, 3 + 7 * labels) == {
        "pearson": pytest.approx(100.0),
        "spearman": pytest.approx(100.0),
    }


def test_a_constant_answer_scores_what_is_documented():
    train = np.array([1, 1, 0])  # 1 is the most frequent
    dev = np.array([1] * 68 + [0] * 32)
    found = constant_scores(GLUE_TASKS["mrpc"], train, dev)
    assert found["accuracy"] == 68.0
    assert found["f1"] == pytest.approx(100 * 2 * 0.68 / 1.68)
    assert constant_scores(GLUE_TASKS["cola"], train, dev)["matthews"] == 0.0
    scored = np.array([0.0, 1.5, 5.0], "float32")
    found = constant_scores(GLUE_TASKS["stsb"], scored, scored)
    assert found == {"pearson": 0.0, "spearman": 0.0}
    assert constant_scores(GLUE_TASKS["mnli"], np.array([2, 2, 0]), dev)["accuracy"] == 0.0


# === The model ===


@pytest.mark.parametrize("kind", ["masked_lm", "backbone"])
def test_a_classifier_begins_with_the_encoder_of_the_preset(kind, tmp_path):
    folder = cases.save_preset(tmp_path / "preset", kind, position="tupe_r", dropout=0.3)
    encoder = Encoder(folder, dropout=0.25)
    assert (encoder.position, encoder.limit, encoder.has_segments) == ("tupe_r", 24, False)
    keras.utils.set_random_seed(1)
    one = encoder.classifier(3)
    keras.utils.set_random_seed(2)
    other = encoder.classifier(3)
    keras.utils.set_random_seed(1)
    again = encoder.classifier(3)
    saved = cases.load_backbone(folder)
    for path, weight in zip(
        [weight.path for weight in saved.weights], one.backbone.weights, strict=True
    ):
        assert weight.path.split("/", 1)[1] == path.split("/", 1)[1]
    for ours, theirs in zip(one.backbone.get_weights(), saved.get_weights(), strict=True):
        assert np.array_equal(ours, theirs)
    heads = [model.get_layer("logits").get_weights()[0] for model in (one, other, again)]
    assert heads[0].shape == (16, 3)
    assert not np.array_equal(heads[0], heads[1])
    assert np.array_equal(heads[0], heads[2])
    assert one.dropout == one.backbone.dropout == 0.25


def test_training_one_classifier_leaves_the_next_as_it_was(tmp_path):
    encoder = Encoder(cases.save_preset(tmp_path / "preset"), dropout=0.0)
    one = encoder.classifier(2)
    before = one.backbone.get_weights()
    for weight in one.weights:
        weight.assign_add(keras.ops.ones_like(weight))
    for ours, theirs in zip(encoder.classifier(2).backbone.get_weights(), before, strict=True):
        assert np.array_equal(ours, theirs)


def test_the_hash_of_a_preset_is_of_its_weights_and_its_words(tmp_path):
    folder = cases.save_preset(tmp_path / "preset", "backbone")
    before = preset_digest(folder)
    method = tmp_path / "method.py"
    method.write_text("one")
    with_method = preset_digest(folder, method)
    method.write_text("other")
    assert len({before, with_method, preset_digest(folder, method)}) == 3
    assert preset_digest(shutil.copytree(folder, tmp_path / "copy")) == before
    words = folder / "assets" / "tokenizer" / "vocabulary.txt"
    words.write_text(words.read_text().replace("plot", "clot"))
    assert preset_digest(folder) != before
    cases.save_preset(tmp_path / "other", "backbone", seed=1)
    assert preset_digest(tmp_path / "other") != before
