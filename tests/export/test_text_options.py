"""Texts become rows in an export as they do in the model's own preprocessor."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_tupe import (
    TupeBackbone,
    TupeMaskedLM,
    TupeTextClassifier,
    TupeTextClassifierPreprocessor,
    TupeTokenizer,
)
from keras_tupe.export import export_preprocessor, export_text_model

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]


def classifier(**kwargs):
    keras.utils.set_random_seed(3)
    backbone = TupeBackbone(len(PIECES), 1, 2, 6, 11, num_segments=2, max_sequence_length=12)
    preprocessor = TupeTextClassifierPreprocessor(TupeTokenizer(PIECES), segments=True, **kwargs)
    model = TupeTextClassifier(backbone, 3, preprocessor=preprocessor, activation="softmax")
    generator = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign(generator.normal(size=weight.shape) * 0.5)
    return model, preprocessor


@pytest.mark.slow
@pytest.mark.parametrize("truncate", ["round_robin", "waterfall"])
def test_an_exported_classifier_reads_texts_and_pairs_as_its_preprocessor_does(tmp_path, truncate):
    model, preprocessor = classifier(sequence_length=8, truncate=truncate)
    export_text_model(model, preprocessor, tmp_path / "text")
    export_preprocessor(preprocessor, tmp_path / "preprocessor")
    text = tf.saved_model.load(str(tmp_path / "text"))
    texts = ["a b c d e f g h i j", "a [MASK] b", "", "a"]
    pairs = ["j i h g f e d c b a", "[CLS] c", "b", "c d e f g h"]
    first, second = tf.constant(texts), tf.constant(pairs)
    single, pair = (model(preprocessor(x, y=None)) for x in (texts, (texts, pairs)))
    answer = text.signatures["classify"](text=first)["probabilities"]
    np.testing.assert_allclose(answer, single, atol=1e-6)
    answer = text.signatures["classify_pair"](text=first, text_pair=second)["probabilities"]
    np.testing.assert_allclose(answer, pair, atol=1e-6)
    assert text.signatures["serving_default"](text=first)["sequence_output"].shape[1] == 8
    norms = np.linalg.norm(text.signatures["embed"](text=first)["embedding"], axis=-1)
    np.testing.assert_allclose(norms, [1, 1, 0, 1], atol=1e-6)

    loaded = tf.saved_model.load(str(tmp_path / "preprocessor"))
    rows = loaded.bert_pack_inputs([loaded.tokenize(first), loaded.tokenize(second)])
    expected = preprocessor((texts, pairs), y=None)
    np.testing.assert_array_equal(rows["input_word_ids"], expected["token_ids"])
    np.testing.assert_array_equal(rows["input_type_ids"], expected["segment_ids"])
    np.testing.assert_array_equal(loaded(first)["input_mask"], preprocessor(texts)["padding_mask"])


@pytest.mark.slow
def test_rows_of_any_length_are_packed_and_too_short_ones_refused(tmp_path):
    tokenizer = TupeTokenizer(PIECES)
    export_preprocessor(tokenizer, tmp_path / "preprocessor", length=6)
    loaded = tf.saved_model.load(str(tmp_path / "preprocessor"))
    pieces = loaded.tokenize(tf.constant(["a b", "c"]))
    assert pieces.dtype == tf.int32
    nested = tf.ragged.constant([[[5], [6]], [[7]]], dtype=tf.int32)  # words of pieces
    for given in (pieces, nested):
        for length in (6, 9):
            rows = loaded.bert_pack_inputs([given], seq_length=length)
            np.testing.assert_array_equal(
                rows["input_word_ids"],
                [[2, 5, 6, 3] + [0] * (length - 4), [2, 7, 3] + [0] * (length - 3)],
            )
    with pytest.raises(tf.errors.InvalidArgumentError, match="must leave room"):
        loaded.bert_pack_inputs([pieces], seq_length=2)
    special = {k: int(v) for k, v in loaded.tokenize.get_special_tokens_dict().items()}
    assert special == {
        "vocab_size": 15, "start_of_sequence_id": 2, "end_of_segment_id": 3,
        "padding_id": 0, "mask_id": 4,
    }  # fmt: skip
    with pytest.raises(ValueError, match="`length` must be at least 5.*Received: length=4"):
        export_preprocessor(tokenizer, tmp_path / "other", length=4)
    with pytest.raises(ValueError, match="exists and is not empty"):
        export_preprocessor(tokenizer, tmp_path / "preprocessor")
    assert [path.name for path in tmp_path.iterdir()] == ["preprocessor"]


def test_more_candidates_than_words_are_refused(tmp_path):
    model = TupeMaskedLM(TupeBackbone(len(PIECES), 1, 2, 6, 11, max_sequence_length=12))
    with pytest.raises(ValueError, match="ordinary pieces, 10. Received: top=11"):
        export_text_model(model, TupeTokenizer(PIECES), tmp_path / "text", top=11)


@pytest.mark.parametrize("given", [None, "vocab.txt", 3])
def test_what_is_no_tokenizer_is_refused(given, tmp_path):
    with pytest.raises(TypeError, match="A tokenizer must be.*Received: tokenizer="):
        export_preprocessor(given, tmp_path / "preprocessor")
