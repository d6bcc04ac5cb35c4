"""What every kind of tokenizer promises, in training and in serving."""

import json
import textwrap

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import python
from tiny_vocabularies import (
    BERT_TOKENS,
    SENTENCES,
    TUPE_TOKENS,
    sentencepiece_model,
    tokenizer,
)

from keras_tupe.tokenizers import SentencePieceBpe

KINDS = ["wordpiece", "sentencepiece", "byte_pair", "fast_bpe"]
FOLD_TEXT = ["wordpiece", "sentencepiece", "fast_bpe"]  # byte pairs lose nothing
HARD = [
    "",
    "   \t\n",
    "The DOG's caf\u00e9: na\u00efve\u2014isn't it? 100%",
    "\u65e5\u672c\u8a9e \U0001f600 \u0130\u1e9e\ufb01",
    "a" * 300,
    "zero\x00byte and\u200bnothing",
    b"\xff\xfe broken \x80 bytes \xc3",
    "[MASK] <mask> [CLS] </s> <pad>",
]

any_text = st.one_of(
    st.text(max_size=60),
    st.binary(max_size=60),
    st.lists(
        st.one_of(st.sampled_from(BERT_TOKENS + TUPE_TOKENS), st.text(max_size=5)), max_size=8
    ).map("".join),
)


@pytest.fixture(params=KINDS)
def op(request):
    return tokenizer(request.param)


def other_special_ids(op):
    return sorted(set(op.special_ids) - {op.unknown_id})


def test_ids_are_a_ragged_batch_of_int32_also_of_nothing(op):
    ids = op.tokenize(SENTENCES)
    assert isinstance(ids, tf.RaggedTensor)
    assert (ids.dtype, ids.shape.rank, int(ids.nrows())) == (tf.int32, 2, len(SENTENCES))
    assert min(ids.row_lengths()) > 5
    for texts in ([], np.array([], "U1"), tf.zeros([0], tf.string)):
        assert op.tokenize(texts).to_list() == op.tokenize_with_masks(texts).to_list() == []


@pytest.mark.parametrize("op", FOLD_TEXT, indirect=True)
def test_white_space_has_no_pieces_and_unknown_characters_are_unknown(op):
    for tokenize in (op.tokenize, op.tokenize_with_masks):
        assert tokenize(["", " ", "\n\t "]).to_list() == [[], [], []]
    (ids,) = op.tokenize(["\u0416\u0416\u0416"]).to_list()
    assert op.unknown_id in ids
    assert all(op.pieces[i] in ("\u2581", op.unknown_token) for i in ids)


@settings(max_examples=70, deadline=None)
@given(texts=st.lists(any_text, min_size=1, max_size=3))
@pytest.mark.parametrize("kind", KINDS)
def test_any_text_gives_ids_inside_the_vocabulary_and_no_special_ones(kind, texts):
    op = tokenizer(kind)
    ids = op.tokenize(tf.constant(texts))
    assert ids.nrows() == len(texts)
    flat = ids.flat_values.numpy()
    assert np.all((flat >= 0) & (flat < op.vocabulary_size))
    assert not set(flat.tolist()) & set(other_special_ids(op))


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(any_text, min_size=1, max_size=3))
@pytest.mark.parametrize("kind", KINDS)
def test_only_mask_tokens_become_special_in_queries(kind, texts):
    op = tokenizer(kind)
    ids = op.tokenize_with_masks(tf.constant(texts)).to_list()
    for text, row in zip(texts, ids, strict=True):
        text = text if isinstance(text, bytes) else text.encode()
        assert row.count(op.mask_id) == text.count(op.mask_token.encode())
        assert not set(row) & (set(other_special_ids(op)) - {op.mask_id})


def test_text_without_masks_is_cut_alike_with_and_without_looking_for_masks(op):
    texts = [text for text in SENTENCES + HARD if op.mask_token not in str(text)]
    assert op.tokenize(texts).to_list() == op.tokenize_with_masks(texts).to_list()


def test_a_mask_takes_the_place_of_a_word(op):
    whole, query = "the dog sat.", f"the {op.mask_token} sat."
    (ids,) = op.tokenize([whole]).to_list()
    pieces = [op.pieces[i] for i in ids]
    (dog,) = (place for place, piece in enumerate(pieces) if piece.strip("\u2581\u0120") == "dog")
    ids[dog] = op.mask_id
    assert op.tokenize_with_masks([query]).to_list() == [ids]


def test_every_mask_of_a_query_is_found(op):
    for number in (1, 2, 3):
        queries = [op.mask_token * number, " ".join([op.mask_token] * number), "no blank", ""]
        rows = op.tokenize_with_masks(queries).to_list()
        assert rows[:2] == [[op.mask_id] * number] * 2
        assert op.mask_id not in rows[2]
        assert rows[3] == []


def test_eager_calls_functions_and_datasets_agree(op):
    texts = tf.constant(SENTENCES + HARD)
    eager = op.tokenize(texts).to_list()
    signature = [tf.TensorSpec([None], tf.string)]
    assert tf.function(op.tokenize, input_signature=signature)(texts).to_list() == eager
    batches = tf.data.Dataset.from_tensor_slices(texts).batch(5).map(op.tokenize)
    assert [row for batch in batches for row in batch.to_list()] == eager


def test_a_tokenizer_outlives_a_new_seed(op):
    texts = tf.constant(SENTENCES)
    function = tf.function(op.tokenize_with_masks)
    expected = function(texts).to_list()
    tf.random.set_seed(3)
    assert function(texts).to_list() == expected
    assert op.tokenize(texts).to_list() == expected


def test_spelling_out_is_undone_and_frames_and_padding_are_not_text(op):
    texts = ["the quick dog reads", "a cat ran"]
    ids = op.tokenize(texts)
    assert op.detokenize(ids).numpy().astype(str).tolist() == texts
    assert op.tokenize(op.detokenize(ids)).to_list() == ids.to_list()
    framed = [[op.start_id, *ids.to_list()[1], op.end_id, op.pad_id, op.pad_id]]
    assert op.detokenize(framed).numpy().tolist() == [b"a cat ran"]
    assert op.detokenize([[op.mask_id]]).numpy().tolist() == [op.mask_token.encode()]
    assert op.detokenize([[], []]).numpy().tolist() == [b"", b""]


def test_an_id_outside_the_vocabulary_is_refused_in_python_and_unknown_in_a_graph(op):
    inside, graph = op.detokenize([[op.unknown_id]]).numpy().tolist(), tf.function(op.detokenize)
    for wrong in (-1, 5000, 2**31 - 1):
        with pytest.raises(ValueError, match=f"must be in the vocabulary.* Received: id {wrong}"):
            op.detokenize([[op.start_id, wrong]])
        assert graph(tf.constant([[wrong]])).numpy().tolist() == inside


def test_what_is_no_batch_of_texts_or_ids_is_refused_with_a_sentence(op):
    for texts, error, sentence in (
        ([1, 2], TypeError, "Texts must be strings"),
        (np.array([1.5]), TypeError, "Texts must be strings"),
        (["a", 1], TypeError, "Texts must be strings"),
        ([None], TypeError, "Texts must be strings"),
        (["half a pair \ud800"], TypeError, "valid Unicode"),
        ("not in a list", ValueError, r"shape \(batch,\)"),
        ([["a"], ["b"]], ValueError, r"shape \(batch,\)"),
        (tf.ragged.constant([["a"], []]), ValueError, "Join the parts"),
    ):
        for method in (op.tokenize, op.tokenize_with_masks):
            with pytest.raises(error, match=f"{sentence}.*Received: "):
                method(texts)
    for ids in ([[1.5]], [["a"]], [1, 2]):
        with pytest.raises((TypeError, ValueError), match=r"Token ids must .* Received: "):
            op.detokenize(ids)


def test_the_attributes_describe_the_vocabulary(op):
    assert op.vocabulary_size == len(op.pieces) == len(set(op.pieces))
    for name in ("start", "end", "pad", "mask", "unknown"):
        assert op.pieces[getattr(op, f"{name}_id")] == getattr(op, f"{name}_token")
    assert len(op.special_ids) == 5
    op.pieces.clear()  # a copy
    assert op.vocabulary_size == len(op.pieces)


def test_a_saved_vocabulary_gives_the_same_tokenizer(op, tmp_path):
    path = tmp_path / op.file_name
    for place in (path, str(path)):
        path.write_text("what was there before")
        op.save(place)
        again = type(op)(place)
        assert again.pieces == op.pieces
        assert again.tokenize(SENTENCES).to_list() == op.tokenize(SENTENCES).to_list()
    assert {file.suffix for file in tmp_path.iterdir()} <= {path.suffix, ".txt"}
    with pytest.raises(FileNotFoundError, match="There is no"):
        type(op)(str(tmp_path / "nowhere"))


def test_a_vocabulary_that_cannot_be_written_leaves_nothing_behind(op, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        op.save(tmp_path / "taken")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


SERVE = """
import json, sys
import tensorflow as tf
import tensorflow_text

folder, texts = sys.argv[1], [bytes.fromhex(text) for text in json.loads(sys.argv[2])]
answers = {}
for kind in json.loads(sys.argv[3]):
    served = tf.saved_model.load(f"{folder}/{kind}")
    texts_tensor = tf.constant(texts)
    answers[kind] = {
        "ids": served.tokenize(texts_tensor).to_list(),
        "queries": served.tokenize_with_masks(texts_tensor).to_list(),
        "texts": [t.hex() for t in served.detokenize(served.tokenize(texts_tensor)).numpy()],
    }
answers["modules"] = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps(answers))
"""


def served_as(kind):
    """The tokenizer of a kind; `"folding"`: a model that leaves case to the tokenizer."""
    if kind == "folding":
        return SentencePieceBpe(sentencepiece_model(normalization_rule_name="nmt_nfkc"))
    return tokenizer(kind)


def test_a_served_tokenizer_gives_the_ids_of_training_in_every_locale(tmp_path):
    texts = [t if isinstance(t, bytes) else t.encode() for t in [*SENTENCES, *HARD, "IN A TITLE I"]]
    string, ids = tf.TensorSpec([None], tf.string), tf.RaggedTensorSpec([None, None], tf.int32)
    kinds = [*KINDS, "folding"]
    for kind in kinds:
        op, exported = served_as(kind), tf.Module()
        exported.op = op
        exported.tokenize = tf.function(op.tokenize, input_signature=[string])
        exported.tokenize_with_masks = tf.function(op.tokenize_with_masks, input_signature=[string])
        exported.detokenize = tf.function(op.detokenize, input_signature=[ids])
        tf.saved_model.save(exported, str(tmp_path / kind))
    script = tmp_path / "serve.py"
    script.write_text(textwrap.dedent(SERVE))
    words = (script, tmp_path, json.dumps([text.hex() for text in texts]), json.dumps(kinds))
    turkish = {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}  # where I is no capital i
    printed = python(*words, cwd=tmp_path, environment=turkish)
    answers = json.loads(printed.splitlines()[-1])
    assert not {"keras_tupe", "keras_hub", "sentencepiece"} & set(answers["modules"])
    for kind in kinds:
        op = served_as(kind)
        ids = op.tokenize(texts)
        assert answers[kind]["ids"] == ids.to_list()
        assert answers[kind]["queries"] == op.tokenize_with_masks(texts).to_list()
        assert answers[kind]["texts"] == [text.hex() for text in op.detokenize(ids).numpy()]
