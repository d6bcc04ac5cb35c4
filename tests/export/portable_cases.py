"""Models to write in other formats, and a process with nothing but the other runtime."""

import json
import pathlib

import numpy as np
import tensorflow as tf
from interpreters import python
from position_cases import MAX_LENGTH, METHOD_NAMES, VOCABULARY, Case, cases_of, encoder, scramble

from keras_tupe import TupeMaskedLM, TupeTextClassifier, positions

CLASSES = 3
# What a method may have beside its defaults, where that is another graph.
VARIANTS = [
    Case(name, ((option, value),))
    for name in METHOD_NAMES
    for option, value in (("k", 3), ("share_layers", True), ("cls", "untied"), ("cls", "tied"))
    if Case(name, ((option, value),)) in cases_of(name)
]
# What the trunk may have.
TRUNKS = [
    {"num_segments": 2, "normalize_first": True},
    {"zero_padded_embeddings": True},
    {"dtype": "mixed_bfloat16"},
    {"dtype": "mixed_float16"},
    {"dtype": "float64"},
    {"attention_pattern": "causal"},
    {
        "attention_pattern": "sliding_window",
        "pattern_options": {"window": 2, "num_global": 1, "separate_global": True},
    },
]
OPEN = {
    "onnx": """
import onnxruntime

session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
names = [output.name for output in session.get_outputs()]


def run(inputs):
    return dict(zip(names, session.run(names, inputs)))
""",
    "litert": """
from ai_edge_litert.interpreter import Interpreter

runner = Interpreter(model_path=path).get_signature_runner("serving_default")


def run(inputs):
    return runner(**inputs)
""",
}
ANSWER = """
import json, sys
import numpy as np

path, examples, answers = sys.argv[1:]
{open}
found, refused = {{}}, []
with np.load(examples) as given:
    for length in sorted({{key.split("/")[0] for key in given}}):
        inputs = {{key.split("/")[1]: given[key] for key in given if key.startswith(length + "/")}}
        try:
            outputs = run(inputs)
        except Exception:
            refused.append(int(length))
        else:
            found |= {{f"{{length}}/{{name}}": value for name, value in outputs.items()}}
np.savez(answers, **found)
others = {{"tensorflow", "keras", "keras_hub", "keras_tupe", "tf2onnx", "onnx"}}
print(json.dumps({{"refused": refused, "others": sorted(others & set(sys.modules))}}))
"""


def classifier(backbone):
    return TupeTextClassifier(backbone, CLASSES)


def model_of(name, task="encoder", dtype="float32", **kwargs):
    """Returns a small model whose every weight is random."""
    backbone = encoder(Case(name), dtype, **kwargs)
    if task == "encoder":
        return backbone
    model = {"masked_lm": TupeMaskedLM, "classifier": classifier}[task](backbone)
    scramble(model.weights)
    return model


def load_method_with_an_unknown_op(folder):
    """Loads a positional method whose bias takes erfinv of the distance, and returns its name."""
    known = pathlib.Path(__file__).parents[2] / "examples" / "linear_slope.py"
    text = known.read_text(encoding="utf-8").replace(
        "* distance\n", "* ops.erfinv(distance / 64)\n"
    )
    text = text.replace("LinearSlopeBias", "ErfinvBias")
    assert "erfinv" in text
    file = folder / "erfinv_slope.py"
    file.write_text(text, encoding="utf-8")
    return positions.load_file(file)


def example(model, length, batch=3):
    """Returns inputs of one length under the names of an export; the last row is padding only."""
    generator = np.random.default_rng(length)
    lengths = [[length], [(length + 1) // 2], [0]]
    inputs = {
        "input_word_ids": generator.integers(0, VOCABULARY, (batch, length)),
        "input_mask": np.arange(length) < np.array(lengths),
        "input_type_ids": generator.integers(0, 2, (batch, length)),
    }
    if isinstance(model, TupeMaskedLM):
        inputs["masked_lm_positions"] = generator.integers(0, length, (batch, 2))
    return {name: value.astype("int32") for name, value in inputs.items()}


def answers_of_keras(model, inputs):
    """Returns what an export of the model should answer, from calls of the model itself."""
    given = {
        "token_ids": inputs["input_word_ids"],
        "padding_mask": inputs["input_mask"],
        "segment_ids": inputs["input_type_ids"],
        "mask_positions": inputs.get("masked_lm_positions"),
    }

    def answer(called):
        return called({tensor.name: given[tensor.name] for tensor in called.inputs})

    outputs = dict(answer(getattr(model, "backbone", model)))
    if isinstance(model, TupeMaskedLM):
        outputs["mlm_logits"] = answer(model)
    if isinstance(model, TupeTextClassifier):
        outputs["probabilities"] = tf.nn.softmax(answer(model))
    return {name: tf.cast(value, "float32").numpy() for name, value in outputs.items()}


def check_in_another_process(file, format, model, tolerance=1e-4):
    """Compares a file with a model, where neither TensorFlow nor Keras is imported.

    Lengths are 1, 7 and the longest; a sequence that is longer by one is refused if, and only if,
    the model has a length limit.
    """
    lengths = (1, 7, MAX_LENGTH, MAX_LENGTH + 1)
    examples = {length: example(model, length) for length in lengths}
    given, answers = file.with_suffix(".given.npz"), file.with_suffix(".answers.npz")
    np.savez(
        given, **{f"{n}/{key}": x for n, found in examples.items() for key, x in found.items()}
    )
    script = ANSWER.format(open=OPEN[format])
    facts = json.loads(python("-c", script, file, given, answers).splitlines()[-1])
    assert facts["others"] == []
    is_limited = getattr(model, "backbone", model).has_length_limit
    assert facts["refused"] == ([MAX_LENGTH + 1] if is_limited else [])
    with np.load(answers) as found:
        for length in set(lengths) - set(facts["refused"]):
            expected = answers_of_keras(model, examples[length])
            names = {key.split("/")[1] for key in found if key.startswith(f"{length}/")}
            assert names == set(expected)
            for name, value in expected.items():
                answer = found[f"{length}/{name}"]
                assert answer.dtype == np.float32
                np.testing.assert_allclose(answer, value, atol=tolerance, rtol=tolerance)


def rows_of_ones(batch, length, **changes):
    """Returns the inputs of a masked language model; a change is the last value of its input."""
    names = ("input_word_ids", "input_mask", "input_type_ids")
    inputs = {name: np.ones((batch, length), "int32") for name in names}
    inputs["masked_lm_positions"] = np.ones((batch, 2), "int32")
    for name, value in changes.items():
        inputs[name][-1, -1] = value
    return inputs


def out_of_range(model, length):
    """Returns pairs of an input and a value that it must not have: far and near, below and above.

    ONNX counts negative indices from the end, and Keras did so before it.
    """
    sizes = {
        "input_word_ids": model.backbone.vocabulary_size,
        "input_type_ids": model.backbone.num_segments,
        "masked_lm_positions": length,
    }
    factors = (-3, -2, -1)
    return [
        (name, value)
        for name, size in sizes.items()
        for value in (size, -1, *(factor * size for factor in factors), -size - 1)
    ]
