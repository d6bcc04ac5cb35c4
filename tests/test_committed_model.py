"""The small trained model in the repository is whole, loads, and knows something."""

import hashlib
import json
import pathlib

import keras
import keras_hub
import numpy as np
from interpreters import python

import keras_tupe

FOLDER = pathlib.Path(__file__).parents[1] / "saved_models" / "novels"

ASK = """
import json, sys
import numpy as np
import tensorflow as tf

folder, texts = sys.argv[1], json.loads(sys.argv[2])
encoder = tf.saved_model.load(folder)
example = np.load(folder + "/example.npz")
inputs = {name: tf.constant(example[name]) for name in
          ("input_word_ids", "input_mask", "input_type_ids")}
served = encoder.signatures["serving_default"](**inputs)["pooled_output"].numpy()
difference = float(np.abs(served - example["pooled_output"]).max())
alone = "tensorflow_text" not in sys.modules

import tensorflow_text  # the preprocessor's op
preprocessor = tf.saved_model.load(folder + "/preprocessor")
special = {k: int(v) for k, v in preprocessor.tokenize.get_special_tokens_dict().items()}
rows = preprocessor(tf.constant(texts))
ids = rows["input_word_ids"].numpy()
losses = []
for row in range(len(texts)):
    length = int(rows["input_mask"][row].numpy().sum())
    places = np.arange(1, length - 1)
    masked = np.repeat(ids[row : row + 1], len(places), axis=0)
    masked[np.arange(len(places)), places] = special["mask_id"]
    many = {name: tf.constant(np.repeat(rows[name].numpy()[row : row + 1], len(places), axis=0))
            for name in rows}
    many["input_word_ids"] = tf.constant(masked)
    many["masked_lm_positions"] = tf.constant(places[:, None], tf.int32)
    logits = encoder.mlm(many)["mlm_logits"][:, 0]
    truth = tf.constant(ids[row][places])
    losses.append(float(tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(truth, logits))))
ours = [name for name in sys.modules if name.split(".")[0] in ("keras_tupe", "keras_hub")]
print(json.dumps({"difference": difference, "alone": alone, "losses": losses, "ours": ours}))
"""


def test_every_file_has_the_hash_on_the_card():
    card = json.loads((FOLDER / "card.json").read_text())
    files = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    assert files - {"card.json"} == set(card["sha256"])
    for name, expected in card["sha256"].items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == expected, name
    assert sum((FOLDER / name).stat().st_size for name in files) <= 10_000_000
    assert card["metrics"]["valid_accuracy"] > 0.3624172, "that of a quarter of the steps"


def test_its_preset_is_loaded_by_both_libraries_and_is_what_was_exported():
    preset = str(FOLDER / "preset")
    model = keras_tupe.TupeMaskedLM.from_preset(preset)
    backbone = keras_hub.models.Backbone.from_preset(preset)
    with np.load(FOLDER / "example.npz") as example:
        inputs = {"token_ids": example["input_word_ids"], "padding_mask": example["input_mask"]}
        places = {"mask_positions": example["masked_lm_positions"]}
        logits = keras.ops.convert_to_numpy(model({**inputs, **places}))
        np.testing.assert_allclose(logits, example["mlm_logits"], atol=1e-4)
        for encoder in (model.backbone, backbone):
            found = keras.ops.convert_to_numpy(encoder(inputs)["sequence_output"])
            np.testing.assert_allclose(found, example["sequence_output"], atol=1e-4)
    assert model.preprocessor.tokenizer.vocabulary_size() == 2000


def test_it_answers_in_a_process_with_tensorflow_alone_and_prefers_english_to_noise():
    texts = ["She opened the door and looked into the room.",
             "Room the looked door into she the and opened."]  # fmt: skip
    answer = json.loads(python("-c", ASK, FOLDER, json.dumps(texts)).splitlines()[-1])
    assert answer["difference"] <= 1e-5
    assert answer["alone"]
    assert answer["ours"] == []
    in_order, shuffled = answer["losses"]
    assert in_order < shuffled - 2, answer["losses"]
