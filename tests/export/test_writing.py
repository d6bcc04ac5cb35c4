"""A causal language model as a SavedModel: strings in, strings out, in a process without us."""

import json

import numpy as np
import pytest
import tensorflow as tf
from generation_cases import LENGTH, causal_lm, text_model
from interpreters import python
from made_once import made_once

from keras_tupe.export import export_encoder, export_generator
from keras_tupe.export.generator import generator_functions

PROMPTS = ["the cat", "a dog bites the man and", "she"]
WRITE = """
import json, sys
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
text, found = tf.constant(json.loads(sys.argv[2])), {}
for name in ("generate", "serving_default", "score"):
    found[name] = model.signatures[name](text=text)
for seed in (1, 1, 2):
    drawn = {"temperature": tf.constant(0.8), "seed": tf.constant(seed)}
    answer = model.signatures["generate_top_k"](text=text, **drawn)["text"]
    found.setdefault("drawn", []).append([x.decode() for x in answer.numpy()])
ours = [name for name in sys.modules if name.split(".")[0] in ("keras_tupe", "keras_hub")]
print(json.dumps({
    "ours": ours,
    "drawn": found.pop("drawn"),
    **{name: {
        key: [x.decode() if isinstance(x, bytes) else x for x in value.numpy().ravel().tolist()]
        for key, value in answer.items()} for name, answer in found.items()},
}))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What another process gets of the export of a WordPiece model."""

    def make(folder):
        model = text_model()
        export_generator(model, model.preprocessor, folder / "model", top_k=9)
        printed = python("-c", WRITE, folder / "model", json.dumps(PROMPTS))
        (folder / "answers.json").write_text(printed.splitlines()[-1])

    return json.loads((made_once(tmp_path_factory, "generator", make) / "answers.json").read_text())


def greedy(model, prompts=PROMPTS):
    model.compile(sampler="greedy")
    return model.generate(prompts)


def test_another_process_writes_the_same_text(written):
    wanted = greedy(text_model())
    assert written["generate"]["text"] == written["serving_default"]["text"] == wanted
    assert len(set(wanted)) == len(wanted)
    assert max(written["generate"]["num_tokens"]) <= LENGTH
    assert written["ours"] == []


def test_a_seed_is_all_that_chance_depends_on(written):
    first, again, other = written["drawn"]
    assert first == again != other
    assert all(text.startswith(prompt) for text, prompt in zip(first, PROMPTS, strict=True))


def test_another_process_gives_the_same_scores(written):
    wanted = text_model().score(PROMPTS)
    found = written["score"]
    np.testing.assert_allclose(
        found["log_probability"], wanted["log_probabilities"].sum(1), rtol=1e-5
    )
    assert found["num_tokens"] == wanted["padding_mask"].sum(1).tolist()
    assert [x for x in found["tokens"] if x][-2:] == ["she", "[SEP]"]


@pytest.mark.slow
def test_a_sentencepiece_model_writes_the_same_text():
    model = text_model("sentencepiece")
    functions = generator_functions(model, model.preprocessor, top_k=3)
    found = functions["generate"](text=tf.constant(PROMPTS))["text"].numpy()
    assert [text.decode() for text in found] == greedy(model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("generate", {"text": ["a cat", ""]}, "must have at least one token"),
        ("generate", {"text": ["the cat " * LENGTH]}, "must be shorter than `max_length`"),
        ("score", {"text": ["the cat " * LENGTH]}, f"at most {LENGTH} tokens"),
        ("generate_top_k", {"text": ["a"], "temperature": 0.0, "seed": 1}, "must be above 0"),
    ],
)
def test_a_batch_that_cannot_be_answered_is_an_error(name, given, sentence):
    model = text_model()
    function = generator_functions(model, model.preprocessor)[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match=sentence):
        function(**{key: tf.constant(value) for key, value in given.items()})


def test_nothing_is_written_of_what_cannot_be_exported(tmp_path):
    model = text_model()
    for wrong, given, sentence in (
        (model.backbone, {}, "must be a `TupeCausalLM`"),
        (model, {"max_length": LENGTH + 1}, "must not exceed the model's max_sequence_length=24"),
        (model, {"top_k": 10**6}, "must not exceed the size of the vocabulary"),
        (causal_lm(dtype="float32"), {}, "must be the one that the model was trained with"),
    ):
        with pytest.raises((TypeError, ValueError), match=sentence):
            export_generator(wrong, model.preprocessor, tmp_path / "new", **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_encoder_of_a_causal_model_is_exported_too(tmp_path):
    model = text_model()
    export_encoder(model, tmp_path / "encoder", 6)
    serve = tf.saved_model.load(str(tmp_path / "encoder")).signatures["encode"]
    ids = np.array([[2, 5, 6, 7, 8, 3]], "int32")
    given = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    found = serve(**{k: tf.constant(v) for k, v in given.items()}, segment_ids=tf.zeros_like(ids))
    wanted = model.backbone(given)["sequence_output"]
    np.testing.assert_allclose(found["sequence_output"], wanted, atol=1e-5)
