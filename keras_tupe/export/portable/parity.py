"""Comparison of another runtime's answers with the model in Keras."""

import dataclasses

import numpy as np
from keras import ops

from keras_tupe.export._names import HUB_NAMES
from keras_tupe.export.encoder import embedding, probabilities
from keras_tupe.export.portable.function import portable_inputs
from keras_tupe.models import TupeMaskedLM, TupeTextClassifier, TupeTextEmbedder

TOLERANCE = 1e-4
LONGEST = 128  # of methods without a length limit
MOST_TOKENS = 5 * 512  # in a batch of several rows


@dataclasses.dataclass(frozen=True)
class Difference:
    """The largest difference between a runtime and Keras, and where it is.

    Attributes:
        value: |a - b| / max(1, |b|), b being Keras's answer; infinite where a is not a number.
        output: name of the output.
        length: tokens per row.
        batch: rows.
    """

    value: float
    output: str
    length: int
    batch: int

    def __str__(self):
        return f"{self.value:.1e} in {self.output} at length={self.length}, batch={self.batch}"


def worst_difference(model, run, shapes):
    """Returns the worst `Difference` over shapes of the inputs.

    Args:
        model: what `float32_model` returned.
        run: function of the inputs by name, arrays, that returns the outputs by name.
        shapes: pairs (batch, length). Rows are padded to different degrees, one of five entirely.
    """
    found = []
    for batch, length in shapes:
        inputs = _random_inputs(model, batch, length)
        answers = run({HUB_NAMES[name]: inputs[name] for name in portable_inputs(model)})
        for output, expected in _expected(model, inputs).items():
            value = _difference(answers[output], expected)
            found.append(Difference(value, output, length, batch))
    return max(found, key=lambda difference: difference.value)


def check_parity(model, run):
    """Returns the worst `Difference` at lengths 1, 7, a middle one and the longest, 1 and 5 rows.

    The longest is the model's `max_sequence_length`, for methods without a length limit at
    most 128. Five rows of more than 512 tokens are left out.

    Raises:
        RuntimeError: if it is above 1e-4, or the runtime takes a sequence that is longer than the
            model's tables.
    """
    backbone = getattr(model, "backbone", model)
    longest = backbone.max_sequence_length
    if not backbone.has_length_limit:
        longest = min(longest, LONGEST)
    lengths = sorted({n for n in (1, 7, (longest + 1) // 2, longest) if n <= longest})
    shapes = [(1, n) for n in lengths] + [(5, n) for n in lengths if 5 * n <= MOST_TOKENS]
    worst = worst_difference(model, run, shapes)
    if worst.value > TOLERANCE:
        raise RuntimeError(
            "The converted model does not answer as it does in Keras, so nothing was written. "
            f"Expected differences of at most {TOLERANCE} x max(1, |value|). Received: {worst}"
        )
    if backbone.has_length_limit and _answers(model, run, longest + 1):
        raise RuntimeError(
            f"The converted model has positions for {longest} tokens and does not refuse more, so "
            f"nothing was written. Received: an answer at length={longest + 1}"
        )
    return worst


def _answers(model, run, length):
    inputs = _random_inputs(model, 1, length)
    try:
        run({HUB_NAMES[name]: inputs[name] for name in portable_inputs(model)})
    except Exception:  # each runtime has errors of its own
        return False
    return True


def _random_inputs(model, batch, length, predictions=3):
    backbone = getattr(model, "backbone", model)
    generator = np.random.default_rng(length)
    lengths = np.array([length, max(1, length - 1), (length + 1) // 2, 1, 0])
    shape = (batch, length)
    inputs = {
        "token_ids": generator.integers(0, backbone.vocabulary_size, shape),
        "padding_mask": np.arange(length) < np.resize(lengths, batch)[:, None],
        "segment_ids": generator.integers(0, max(2, backbone.num_segments), shape),
        "mask_positions": generator.integers(0, length, (batch, predictions)),
    }
    return {name: value.astype("int32") for name, value in inputs.items()}


def _expected(model, inputs):
    backbone = getattr(model, "backbone", model)

    def answer(called):
        return called({tensor.name: inputs[tensor.name] for tensor in called.inputs})

    outputs = dict(answer(backbone))
    if isinstance(model, TupeMaskedLM):
        outputs["mlm_logits"] = answer(model)
    if isinstance(model, TupeTextClassifier):
        outputs["probabilities"] = probabilities(model, outputs["pooled_output"])
    if isinstance(model, TupeTextEmbedder):
        outputs["embedding"] = embedding(model, outputs["sequence_output"], inputs["padding_mask"])
    return {name: ops.convert_to_numpy(value) for name, value in outputs.items()}


def _difference(answer, expected):
    if answer.shape != expected.shape or answer.dtype != expected.dtype:
        return np.inf
    relative = np.abs(answer - expected) / np.maximum(1, np.abs(expected))
    return float(np.max(np.where(np.isnan(relative), np.inf, relative)))
