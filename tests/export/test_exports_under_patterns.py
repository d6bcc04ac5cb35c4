"""Exported encoders under attention patterns, reused in another process."""

import numpy as np
import pytest
from interpreters import python
from position_cases import Case, encoder, inputs, random_ids

from keras_tupe import TupeMaskedLM
from keras_tupe.export import export_encoder

PATTERNS = {
    "causal": ("causal", {}),
    "window": ("sliding_window", {"window": 2, "num_global": 2, "separate_global": True}),
}
ANSWER = """
import sys
import numpy as np
import tensorflow as tf

folder, example, answers = sys.argv[1:]
given = {name: tf.constant(value) for name, value in np.load(example).items()}
outputs = tf.saved_model.load(folder).signatures["serving_default"](**given)
np.savez(answers, **{name: value.numpy() for name, value in outputs.items()})
"""


@pytest.mark.parametrize(
    "name",
    [
        "tupe_r",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("shaw", "rope", "absolute", "t5")),
    ],
)
@pytest.mark.parametrize("pattern", [pytest.param("causal", marks=pytest.mark.slow), "window"])
def test_the_encoder_answers_as_the_model_does(name, pattern, tmp_path, tensorflow):
    kind, options = PATTERNS[pattern]
    backbone = encoder(
        Case(name),
        "float32",
        attention_pattern=kind,
        pattern_options=options,
        max_sequence_length=9,
    )
    given = inputs(random_ids(2, 9), lengths=[9, 6])
    wanted = backbone(given)["sequence_output"]
    export_encoder(TupeMaskedLM(backbone), tmp_path / "encoder")
    example = {
        "input_word_ids": given["token_ids"],
        "input_mask": given["padding_mask"],
        "input_type_ids": np.zeros_like(given["token_ids"]),
    }
    np.savez(tmp_path / "example.npz", **example)
    paths = [tmp_path / x for x in ("encoder", "example.npz", "answers.npz")]
    python("-c", ANSWER, *paths)
    found = np.load(tmp_path / "answers.npz")["sequence_output"]
    real = given["padding_mask"].astype(bool)
    np.testing.assert_allclose(found[real], np.array(wanted)[real], rtol=0, atol=1e-4)
