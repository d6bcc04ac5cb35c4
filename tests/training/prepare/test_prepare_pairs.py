"""Rows of pairs: those of the text, with an index that names their documents, however made."""

import shutil

import commands
import numpy as np
import pair_cases
import prepare_cases as cases
import pytest
from prepare_cases import LENGTH, documents, facts, failure, files, record, rows, run, tokenizer_of

from keras_tupe import data
from training.prepare import rows as prepare_rows


@pytest.fixture(scope="module")
def texts():
    return documents(number=149)


@pytest.fixture(scope="module")
def source(texts, tmp_path_factory):
    return cases.write_text(tmp_path_factory.mktemp("in") / "corpus.txt", texts)


@pytest.fixture(scope="module")
def prepared(source, tmp_path_factory):
    """Rows for both kinds, in many blocks."""
    out = tmp_path_factory.mktemp("prepared") / "rows"
    return run(out, source, more=["--pairs", "next", "--block-bytes", 3001])


def expected(folder, texts, part):
    """The rows of a part, the number of each one's document, and what was left out."""
    tokenizer = tokenizer_of(folder)
    pad_ids = (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id)
    assert pad_ids == (pair_cases.PAD, pair_cases.START, pair_cases.END)
    found, numbers, alone, left = [], [], 0, 0
    for block in cases.expected_blocks(cases.expected_parts(texts)[part], 3001):
        for text in block:
            sentences = tokenizer.tokenize(data.split_sentences(text)).to_list()
            of_document, parts_left = pair_cases.expected_rows(sentences, LENGTH)
            numbers += [numbers[-1] + 1 if numbers else 0] * len(of_document)
            found += of_document
            alone += not of_document
            left += parts_left
    return found, numbers, alone, left


@pytest.mark.parametrize("part", ["train", "valid"])
def test_rows_and_index_equal_the_oracle(prepared, texts, part):
    wanted, numbers, alone, left = expected(prepared, texts, part)
    assert rows(prepared, part) == wanted
    sizes, documents, number = [], [], 0
    for shard in cases.shards(prepared, part):
        index = np.load(shard.with_suffix(".pairs.npy"))
        assert index.dtype == np.int64
        sizes += index[:, 0].tolist()
        documents += (number + np.unique(index[:, 1], return_inverse=True)[1]).tolist()
        number = documents[-1] + 1
        assert f"{shard.stem}.pairs.npy" in record(prepared)["sha256"]
    assert documents == numbers
    every, examples = np.arange(len(sizes)).repeat(40), np.arange(40 * len(sizes))
    drawn = data.PreparedRows(prepared, part).partners.chosen(every, examples, 1)
    ours = data.Partners(np.array(sizes), np.array(documents)).chosen(every, examples, 1)
    np.testing.assert_array_equal(drawn, ours)
    assert sizes == [len(pair_cases.segments(row)[1]) for row in wanted]
    found = record(prepared)["splits"][part]
    assert found["rows"] == len(wanted)
    assert found["documents_without_pair"] == alone > 0
    assert found["sentences_left_out"] == left > 0
    assert found["tokens"] == sum(len(row) - row.count(0) - 3 for row in wanted)


def test_they_serve_both_kinds_and_masked_lm(prepared):
    source = data.PreparedRows(prepared)
    for kind in ("next", "order"):
        batches = data.Rows(source, data.MaskedPairs.of(source, kind), batch_size=8, seed=1)
        inputs, labels, _ = batches.batch(3)
        assert inputs["segment_ids"].any(axis=1).all()
        assert {*labels["pair"].tolist()} == {0, 1}
    data.Rows(source, data.Masking.of(source.vocabulary), batch_size=8, seed=1).batch(0)
    described = commands.done("prepare", "--describe", prepared)
    assert "documents without pair" in described


def test_rows_of_order_are_the_same_without_an_index(prepared, source, tmp_path):
    out = run(tmp_path / "order", source, more=["--pairs", "order", "--block-bytes", 3001])
    ours, theirs = files(out), files(prepared)
    assert {name for name in theirs if name not in ours} == {n for n in theirs if ".pairs." in n}
    assert ours == {name: theirs[name] for name in ours}
    rows = data.PreparedRows(out)
    data.MaskedPairs.of(rows, "order")
    with pytest.raises(ValueError, match="`--pairs next`. Received: rows with pairs='order'"):
        data.MaskedPairs.of(rows, "next")
    with pytest.raises(FileNotFoundError, match="prepared with `--pairs next`"):
        _ = rows.partners


def test_rows_without_pairs_are_refused_and_have_no_word_of_them(source, tmp_path):
    out = run(tmp_path / "plain", source)
    assert "pairs" not in record(out)
    assert "documents_without_pair" not in record(out)["splits"]["train"]
    with pytest.raises(ValueError, match="`--pairs order` or `--pairs next`.*pairs=None"):
        data.MaskedPairs.of(data.PreparedRows(out), "order")
    message = failure(out, source, more=["--pairs", "next"])
    assert "with other settings" in message


def test_work_that_was_stopped_goes_on_to_the_same_files(prepared, source, tmp_path, monkeypatch):
    pack, packed = prepare_rows.pack_block, []

    def stopped(*args):
        if len(packed) == 5:
            raise KeyboardInterrupt
        packed.append(args)
        return pack(*args)

    monkeypatch.setattr(prepare_rows, "pack_block", stopped)
    words = cases.words(tmp_path / "rows", source, more=["--pairs", "next", "--block-bytes", 3001])
    assert commands.run("prepare", *words).code != 0
    assert len(packed) == 5
    monkeypatch.undo()
    commands.done("prepare", *words)
    assert files(tmp_path / "rows") == files(prepared)
    assert facts(tmp_path / "rows") == facts(prepared)


@pytest.mark.parametrize("kind", ["next", "order"])
def test_documents_of_one_sentence_are_an_error_if_there_is_no_other(kind, tmp_path):
    single = [f"Only one sentence is here, of {n} words and some more of them." for n in range(70)]
    source = cases.write_text(tmp_path / "single.txt", single)
    message = failure(tmp_path / "out", source, more=["--pairs", kind])
    assert "at least two sentences" in message
    assert "of more: 0" in message
    assert not (tmp_path / "out").exists()


def test_random_segments_need_two_documents(tmp_path):
    text = " ".join(f"Sentence number {n} of a long text." for n in range(200))
    source = cases.write_text(tmp_path / "one.txt", [text])
    options = ("--vocabulary-size", "100", "--length", "16", "--valid", "0")
    message = failure(tmp_path / "next", source, options=options, more=["--pairs", "next"])
    assert "the train part needs two documents" in message
    assert "of one sentence: 0, of more: 1" in message
    run(tmp_path / "order", source, options=options, more=["--pairs", "order"])


@pytest.mark.parametrize("index", [np.zeros((3, 2), int), np.zeros((3, 2)), np.array(7)])
def test_an_index_of_other_rows_is_refused(prepared, index, tmp_path):
    shutil.copytree(prepared, tmp_path / "rows")
    np.save(tmp_path / "rows" / "valid-00000000.pairs.npy", index)
    kept = {key: x for key, x in record(prepared).items() if key not in ("sha256", "seal")}
    (tmp_path / "rows" / "preparation.json").unlink()
    data.seal(tmp_path / "rows", kept)
    with pytest.raises(ValueError, match=r"must hold \d+ rows of 2 integers from 0 .*pairs.npy"):
        _ = data.PreparedRows(tmp_path / "rows", "valid").partners
