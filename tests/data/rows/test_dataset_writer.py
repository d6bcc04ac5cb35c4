"""Rows on disk: what was given comes back, equal rows give equal files, hashes are right."""

import hashlib
import itertools
import json
import os

import numpy as np
import pytest
import tensorflow_datasets as tfds
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy

from keras_tupe.data import (
    file_hash,
    order_hash,
    read_sealed_json,
    row_features,
    rows_hash,
    seal,
    write_json,
    write_rows,
    write_sealed_json,
)

LENGTH = 13


@pytest.fixture
def rows():
    return np.random.default_rng(3).integers(-(2**31), 2**31, (211, LENGTH), dtype="int32")


def read(folder, split):
    source = tfds.builder_from_directory(folder).as_data_source(split=split)
    return np.array([example["token_ids"] for example in source])


def test_rows_come_back_in_their_order_whatever_the_blocks_and_shards(rows, tmp_path):
    empty = rows[:0]
    splits = {
        "train": [empty, rows[:1], empty, rows[1:90], rows[90:]],
        "valid": iter([rows[5:8], empty]),
        "none": [empty, empty],
    }
    sizes = write_rows(tmp_path, splits, LENGTH, rows_per_shard=53)
    assert sizes == {"train": 211, "valid": 3}
    np.testing.assert_array_equal(read(tmp_path, "train"), rows)
    np.testing.assert_array_equal(read(tmp_path, "valid"), rows[5:8])
    info = tfds.builder_from_directory(tmp_path).info
    assert info.splits["train"].shard_lengths == [53, 53, 53, 52]
    assert list(info.splits) == ["train", "valid"]
    feature = info.features["token_ids"]
    assert (feature.shape, feature.dtype) == ((LENGTH,), np.int32)
    assert len(list(tmp_path.glob("packed_rows-train.array_record-*"))) == 4
    assert len(list(tmp_path.iterdir())) == 4 + 1 + 2


def test_equal_rows_give_equal_files_wherever_they_are_written(rows, tmp_path):
    contents = []
    for name, cuts in (("a", [0, 211]), ("b", [0, 2, 150, 211])):
        folder = tmp_path / name
        folder.mkdir()
        blocks = [rows[first:end] for first, end in itertools.pairwise(cuts)]
        write_rows(folder, {"train": blocks}, LENGTH, rows_per_shard=101)
        contents.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert contents[0] == contents[1]


def test_a_shard_may_hold_exactly_all_rows(rows, tmp_path):
    write_rows(tmp_path, {"train": [rows]}, LENGTH, rows_per_shard=len(rows))
    assert tfds.builder_from_directory(tmp_path).info.splits["train"].shard_lengths == [211]


def test_progress_wraps_the_blocks_of_each_split(rows, tmp_path):
    seen = []

    def progress(blocks):
        for block in blocks:
            seen.append(len(block))
            yield block

    write_rows(tmp_path, {"a": [rows[:2], rows[2:5]], "b": [rows]}, LENGTH, progress=progress)
    assert seen == [2, 3, 211]


def test_rows_of_another_length_are_refused(rows, tmp_path):
    with pytest.raises(ValueError, match="Shape"):
        write_rows(tmp_path, {"train": [rows]}, LENGTH + 1)


def test_the_features_say_what_a_row_is():
    feature = row_features(7)["token_ids"]
    assert (feature.shape, feature.dtype) == ((7,), np.int32)


def test_the_seal_holds_the_hash_of_every_file(tmp_path):
    contents = {"a.txt": b"", "b.bin": bytes(range(256)) * 9001, ".hidden": b"x"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    seal(tmp_path, {"command": "caf\u00e9", "length": 7})
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    assert read_sealed_json(tmp_path / "preparation.json") == {
        "format": 2,
        "command": "caf\u00e9",
        "length": 7,
        "sha256": hashes,
    }
    assert {name: file_hash(tmp_path / name) for name in contents} == hashes
    assert len(list(tmp_path.iterdir())) == 4  # nothing unfinished


def test_json_replaces_what_was_there_and_keeps_names_that_are_no_unicode(tmp_path):
    path = tmp_path / "record.json"
    for record in ({"a": [1, 2**256, None]}, {"name": os.fsdecode(b"caf\xe9.txt"), "\u00e9": True}):
        write_json(path, record)
        assert json.loads(path.read_text("utf-8")) == record
    assert list(tmp_path.iterdir()) == [path]


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "record.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError, match="not JSON serializable"):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text("utf-8")) == {"a": 1}


def test_a_sealed_record_comes_back_and_nothing_else_does(tmp_path):
    path, record = tmp_path / "record.json", {"a": [1, 2**256, None], "caf\u00e9": {"b": "\n}"}}
    write_sealed_json(path, record)
    assert read_sealed_json(path) == record
    content = path.read_bytes()
    assert json.loads(content).keys() == {*record, "seal"}
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r".+"):
            read_sealed_json(path)
    write_json(path, record)
    with pytest.raises(ValueError, match="not what was written"):
        read_sealed_json(path)


int32_rows = hypothesis_numpy.arrays(
    "int32", st.tuples(st.integers(0, 7), st.just(3)), elements=st.integers(-(2**31), 2**31 - 1)
)


@given(int32_rows, st.randoms())
def test_the_hash_of_rows_names_their_multiset(rows, random):
    expected = sum(
        int(
            hashlib.sha256(
                b"".join(int(i).to_bytes(4, "little", signed=True) for i in row)
            ).hexdigest(),
            16,
        )
        for row in rows
    )
    assert rows_hash(rows) == expected % 2**256
    order = random.sample(range(len(rows)), len(rows))
    assert rows_hash(rows[order]) == rows_hash(rows)
    assert rows_hash(rows.astype("int64")) == rows_hash(rows.astype(">i4")) == rows_hash(rows)
    assert (rows_hash(rows[:2]) + rows_hash(rows[2:])) % 2**256 == rows_hash(rows)
    assert len(rows) == 0 or rows_hash(rows[1:]) != rows_hash(rows)


@given(int32_rows, st.randoms())
def test_the_hash_of_the_order_names_rows_in_their_order(rows, random):
    digests = [hashlib.sha256(row.astype("<i4").tobytes()).digest() for row in rows]
    expected = sum((n + 1) * int.from_bytes(digest, "big") for n, digest in enumerate(digests))
    assert order_hash(rows) == expected % 2**256
    order = random.sample(range(len(rows)), len(rows))
    is_same = (rows[order] == rows).all()
    assert (order_hash(rows[order]) == order_hash(rows)) == is_same
    parts = order_hash(rows[:2]) + order_hash(rows[2:]) + 2 * rows_hash(rows[2:])
    assert parts % 2**256 == order_hash(rows)
    assert len(rows) == 0 or order_hash(rows[1:]) != order_hash(rows)
