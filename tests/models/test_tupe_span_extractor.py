"""The model that finds answers in a text."""

import numpy as np
import pytest
from keras import ops
from position_cases import Case, encoder, inputs, random_ids, scramble
from tolerances import in_float64

from keras_tupe.models import (
    TupeBackbone,
    TupeSpanExtractor,
    TupeTextClassifierPreprocessor,
    TupeTokenizer,
    extend_positions,
)

LENGTHS = [7, 4, 1]


def extractor(dtype="float64", name="tupe_r", scale=0.4, **kwargs):
    model = TupeSpanExtractor(encoder(Case(name), dtype, scale=scale, num_layers=1, **kwargs))
    if scale:
        scramble(model.weights)
    return model


def some_inputs(length=7, lengths=LENGTHS):
    return inputs(random_ids(len(lengths), length), lengths)


def answer(model, given):
    return ops.convert_to_numpy(ops.cast(model(given), "float64"))


def wider(given, more, fill=3):
    """The same rows in a batch of more places, with something in the padding."""
    return {
        name: np.pad(value, ((0, 0), (0, more)), constant_values=fill if name == "token_ids" else 0)
        for name, value in given.items()
    }


def test_logits_are_products_with_a_start_and_an_end_vector():
    model, given = extractor(), some_inputs()
    states = ops.convert_to_numpy(model.backbone(given)["sequence_output"])
    vectors = ops.convert_to_numpy(model.get_layer("span_logits").vectors)
    got = answer(model, given)
    assert got.shape == (3, 2, 7)
    for row, length in enumerate(LENGTHS):
        for place in range(7):
            wanted = vectors @ states[row, place] if place < length else [-1e9, -1e9]
            np.testing.assert_allclose(got[row, :, place], wanted, atol=in_float64(1e-12))
    assert len(model.weights) == len(model.backbone.weights) + 1


@pytest.mark.parametrize("name", ["tupe_r", "shaw"])
def test_the_width_of_a_batch_does_not_matter(name):
    model, given = extractor(name=name), some_inputs()
    narrow, wide = answer(model, given), answer(model, wider(given, 5))
    np.testing.assert_allclose(wide[..., :7], narrow, atol=in_float64(1e-12))
    assert (wide[..., 7:] == -1e9).all()


def test_it_can_be_made_longer():
    model = extractor("float32")
    longer = extend_positions(model, 31)
    assert type(longer) is TupeSpanExtractor
    assert answer(longer, some_inputs(length=31, lengths=[31])).shape == (1, 2, 31)
    head, wanted = (m.get_layer("span_logits").vectors for m in (longer, model))
    np.testing.assert_array_equal(ops.convert_to_numpy(head), ops.convert_to_numpy(wanted))


def test_raw_questions_and_contexts_are_packed_in_pairs(tensorflow):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "dog", "a", "cat", "sat"]
    tokenizer = TupeTokenizer(words)
    backbone = TupeBackbone(tokenizer.vocabulary_size(), 1, 2, 16, 32, num_segments=2)
    preprocessor = TupeTextClassifierPreprocessor(tokenizer, sequence_length=16, segments=True)
    model = TupeSpanExtractor(backbone, preprocessor)
    pairs = (["The dog", "A cat"], ["A cat sat", "The dog sat"])
    logits = model.predict(pairs, verbose=0)
    assert logits.shape == (2, 2, 16)
    np.testing.assert_array_equal(logits[0, 0] == -1e9, np.arange(16) >= 8)
    with pytest.raises(ValueError, match=r"for a backbone with `num_segments`"):
        TupeSpanExtractor(extractor("float32").backbone, preprocessor)
