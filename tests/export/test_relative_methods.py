"""Exported encoders of the methods that act inside attention, reused in another process."""

import json

import keras
import numpy as np
import pytest
from interpreters import python

from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.export import export_encoder

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
LENGTH = 7

ANSWER = """
import json, sys
import numpy as np
import tensorflow as tf

folder, example, answers = sys.argv[1:]
given = dict(np.load(example))
target = tf.constant(given.pop("target"))
inputs = {name: tf.constant(value) for name, value in given.items()}
encoder = tf.saved_model.load(folder)
with tf.GradientTape() as tape:
    outputs = encoder(inputs, training=True)
    loss = tf.reduce_sum(outputs["sequence_output"] * target)
gradients = tape.gradient(loss, encoder.trainable_variables)
found = {v.name: g for v, g in zip(encoder.trainable_variables, gradients) if g is not None}
serve = encoder.signatures["serving_default"](**inputs)["sequence_output"].numpy()
longer = {name: tf.concat([value] * 3, axis=1) for name, value in inputs.items()}
longer = encoder(longer)["sequence_output"].numpy() if "{longer}" == "True" else np.zeros(0)
np.savez(answers, serve=serve, longer=longer, **{
    str(index): gradient.numpy() for index, gradient in enumerate(gradients) if gradient is not None
})
print(json.dumps([variable.name for variable in encoder.trainable_variables]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("position", "options"),
    [
        ("qkr_3", {"k": 2, "cls": "untied"}),
        ("qkr_3", {}),
        ("qkr_4", {"k": 2, "share_layers": True, "cls": "untied"}),
    ],
)
def test_the_encoder_answers_and_learns_as_the_model_does(position, options, tmp_path, tensorflow):
    keras.utils.set_random_seed(3)
    backbone = TupeBackbone(
        len(VOCABULARY), 2, 2, 6, 11, dropout=0.0,
        position=position, position_options=options, max_sequence_length=LENGTH,
    )  # fmt: skip
    model = TupeMaskedLM(backbone)
    generator = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign(generator.normal(size=weight.shape) * 0.5)
    ids = generator.integers(5, len(VOCABULARY), (3, LENGTH)).astype("int32")
    mask = np.array([[1] * 7, [1] * 4 + [0] * 3, [1] * 6 + [0]], "int32")
    target = generator.normal(size=(3, LENGTH, 6)).astype("float32")
    given = {"token_ids": ids, "padding_mask": mask}
    with tensorflow.GradientTape() as tape:
        expected = backbone(given)["sequence_output"]
        loss = tensorflow.reduce_sum(expected * target)
    variables = [weight.value for weight in backbone.trainable_weights]
    gradients = tape.gradient(loss, variables)

    export_encoder(model, tmp_path / "encoder")
    example = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": np.zeros_like(ids)}
    np.savez(tmp_path / "example.npz", target=target, **example)
    script = ANSWER.replace("{longer}", str(not backbone.has_length_limit))
    paths = [tmp_path / name for name in ("encoder", "example.npz", "answers.npz")]
    printed = python("-c", script, *paths)
    names = json.loads(printed.splitlines()[-1])
    answers = np.load(tmp_path / "answers.npz")
    np.testing.assert_allclose(answers["serve"], expected, rtol=0, atol=1e-5)
    if not backbone.has_length_limit:
        given = {key: np.concatenate([value] * 3, axis=1) for key, value in given.items()}
        longer = backbone(given)["sequence_output"]
        np.testing.assert_allclose(answers["longer"], longer, rtol=0, atol=1e-5)
    by_shape = {}
    for index in range(len(names)):
        if str(index) in answers:
            gradient = answers[str(index)]
            by_shape.setdefault(gradient.shape, []).append(gradient)
    largest = max(np.abs(gradient).max() for gradient in gradients if gradient is not None)
    for variable, gradient in zip(variables, gradients, strict=True):
        if gradient is not None:
            nearest = min(np.abs(other - gradient).max() for other in by_shape[gradient.shape])
            assert nearest < 1e-4 * largest, variable.name
