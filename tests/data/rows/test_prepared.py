"""Prepared rows: what was written is read, in any order and process, or an error names the file."""

import itertools
import json
import pathlib
import pickle
import re
import shutil

import numpy as np
import prepared_directories
import pytest
from interpreters import python

from keras_tupe.data import Masking, PreparedRows, file_hash, seal, split_hash, write_shard
from keras_tupe.data.rows.json_record import (
    is_sealed,
    read_sealed_json,
    write_json,
    write_sealed_json,
)

LENGTH = 32
ROWS = {
    "train": prepared_directories.make_rows(450, LENGTH),
    "valid": prepared_directories.make_rows(7, LENGTH, seed=1),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with five shards for training, the last of 50 rows, and one for validation."""
    folder = tmp_path_factory.mktemp("prepared") / "rows"
    return prepared_directories.write_directory(folder, ROWS)


@pytest.fixture
def copy(prepared, tmp_path):
    return pathlib.Path(shutil.copytree(prepared, tmp_path / "copy"))


def record_of(folder):
    return json.loads((folder / "preparation.json").read_text("utf-8"))


def edit(folder, change=lambda record: None):
    """Changes the record and writes it with new hashes, as somebody might who means harm."""
    record = record_of(folder)
    (folder / "preparation.json").unlink()
    change(record)
    del record["seal"]
    hashes = {path.name: file_hash(path) for path in folder.iterdir()}
    if "vocabulary.txt" in hashes:
        record["vocabulary"]["sha256"] = hashes["vocabulary.txt"]
    write_sealed_json(folder / "preparation.json", {**record, "sha256": hashes})


@pytest.mark.parametrize("split", ROWS)
def test_rows_are_read_in_any_order_and_repeatedly(prepared, split):
    rows, expected = PreparedRows(prepared, split), ROWS[split]
    assert (len(rows), rows.length) == expected.shape
    everything = rows[np.arange(len(expected))]
    assert everything.dtype == np.int32
    np.testing.assert_array_equal(everything, expected)
    indices = np.random.default_rng(3).integers(0, len(expected), 1000)
    np.testing.assert_array_equal(rows[indices], expected[indices])
    np.testing.assert_array_equal(rows[[3, 3]], expected[[3, 3]])
    assert rows[np.arange(0)].shape == (0, LENGTH)


def test_a_token_takes_two_bytes_or_four(prepared, tmp_path):
    assert len([*prepared.glob("train-*.npy")]) == 5
    assert np.load(prepared / "train-00000000.npy").dtype == "uint16"
    rows = np.array([[0, 2**16 - 1], [2**16, 2**17]])
    (name,) = write_shard(tmp_path, "train", 0, rows, 2**17 + 1)
    assert np.load(tmp_path / name).dtype == "uint32"
    np.testing.assert_array_equal(np.load(tmp_path / name), rows)
    assert write_shard(tmp_path, "train", 1, rows[:0], 2**17 + 1) == {}
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("token", [-1, 500, 2**16 + 7])
def test_a_shard_is_not_written_with_ids_that_two_bytes_would_make_others_of(token, tmp_path):
    rows = ROWS["train"][:3].copy()
    rows[2, 1] = token
    message = rf"from 0 to 499; .*Received: token_ids\[2, 1\]={token}"
    with pytest.raises(ValueError, match=message):
        write_shard(tmp_path, "train", 0, rows, 500)
    assert not list(tmp_path.iterdir())


def test_the_hash_of_a_split_changes_with_its_rows_and_their_order(prepared, tmp_path):
    found = {split_hash(PreparedRows(prepared).record, split) for split in ROWS}
    for number, rows in enumerate((ROWS["train"], ROWS["train"][::-1], ROWS["train"][:-1])):
        folder = prepared_directories.write_directory(tmp_path / str(number), {"train": rows})
        found.add(split_hash(PreparedRows(folder).record, "train"))
    assert len(found) == 4


PROCESSES = """
import multiprocessing, sys
import numpy as np
from training.command.without_keras import without_keras

def main():
    from keras_tupe.data.rows.prepared import PreparedRows

    rows, indices = PreparedRows(sys.argv[1]), np.arange(0, 450, 7)
    expected = rows[indices]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert all((found == expected).all() for found in pool.map(rows.__getitem__, [indices] * 4))
    assert not {"keras", "tensorflow", "tensorflow_datasets"} & set(sys.modules)

if __name__ == "__main__":
    with without_keras():
        main()
"""


def test_other_processes_read_the_same_without_tensorflow(prepared, tmp_path):
    script = tmp_path / "processes.py"
    script.write_text(PROCESSES, "utf-8")
    root = pathlib.Path(__file__).resolve().parents[3]
    python(script, prepared, environment={"PYTHONPATH": str(root)})


def test_rows_that_are_sent_to_another_process_are_opened_there(prepared):
    rows, indices = PreparedRows(prepared), np.array([449, 0, 123])
    sent = pickle.dumps(rows)
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent)[indices], rows[indices])


def test_the_masking_is_that_of_the_vocabulary(prepared):
    vocabulary, pieces = PreparedRows(prepared).vocabulary, prepared_directories.pieces()
    assert Masking.of(vocabulary) == Masking(500, mask_id=4, pad_id=0, special_ids=(1, 2, 3))
    assert Masking.of(vocabulary, rate=0.3) == Masking(500, 4, 0, (1, 2, 3), 0.3)
    of_words = Masking.of(vocabulary, whole_word=True).begins_word
    assert of_words == tuple(not piece.startswith("##") for piece in pieces)
    assert vocabulary.pieces == tuple(pieces)
    assert (vocabulary.start_id, vocabulary.lowercase) == (2, True)


def test_whole_words_of_a_sentencepiece_vocabulary(copy):
    (copy / "vocabulary.txt").unlink()
    (copy / "vocabulary.spm").write_bytes(prepared_directories.sentencepiece_model())
    facts = {"kind": "sentencepiece", "file": "vocabulary.spm", "size": 450}
    facts["sha256"] = file_hash(copy / "vocabulary.spm")
    edit(copy, lambda record: record["vocabulary"].update(facts))
    with pytest.raises(ValueError, match=r"the vocabulary has \d+ pieces") as caught:
        PreparedRows(copy)
    size = int(re.search(r"(\d+) pieces", str(caught.value))[1])
    for shard in copy.glob("*.npy"):
        np.save(shard, np.load(shard) % size)
    edit(copy, lambda record: record["vocabulary"].update(size=size))
    vocabulary = PreparedRows(copy).vocabulary
    assert len(vocabulary.begins_word) == size
    assert sum(vocabulary.begins_word) > 10
    for piece, begins in zip(vocabulary.pieces, vocabulary.begins_word, strict=True):
        assert begins == (piece[0] == "\u2581")
    assert "<0x00>" in vocabulary.pieces


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([450], IndexError, r"from 0 to 449. Received: 450 to 450$"),
        ([-1, 3], IndexError, r"Received: -1 to 3$"),
        ([1.0], TypeError, r"array of integers.*dtype=float64$"),
        (3, TypeError, r"Received: shape=\(\)"),
        ([[3]], TypeError, r"Received: shape=\(1, 1\)"),
        ([True], TypeError, r"dtype=bool$"),
    ],
)
def test_numbers_that_are_no_rows_are_refused(prepared, indices, error, message):
    with pytest.raises(error, match=message):
        PreparedRows(prepared)[indices]


def test_an_unknown_split_and_one_without_rows_are_refused(prepared, tmp_path):
    message = r"one of \['train', 'valid'\]. Received: split='test'"
    with pytest.raises(ValueError, match=message):
        PreparedRows(prepared, "test")
    folder = prepared_directories.write_directory(
        tmp_path / "rows", {"train": ROWS["train"], "valid": ROWS["valid"][:0]}
    )
    with pytest.raises(ValueError, match=r"one of \['train'\]"):
        PreparedRows(folder, "valid")


def test_a_folder_of_something_else_and_an_unfinished_one_are_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match=r"training.prepare.*Received: directory="):
            PreparedRows(folder)
    (tmp_path / "soon.unfinished").mkdir()
    with pytest.raises(FileNotFoundError, match="has not finished"):
        PreparedRows(tmp_path / "soon")


@pytest.mark.parametrize("number", [1, 2, 4])
def test_another_format_is_refused(copy, number):
    edit(copy, lambda record: record.update(format=number))
    with pytest.raises(ValueError, match=rf"reads format 3: .*Received: format={number} in "):
        PreparedRows(copy)


@pytest.mark.parametrize("name", ["train-00000003.npy", "vocabulary.txt"])
def test_a_missing_or_renamed_file_is_found_at_once(copy, name):
    (copy / name).rename(copy / "other")
    with pytest.raises(FileNotFoundError, match=rf"missing or have another name.*{name}"):
        PreparedRows(copy)


def test_a_folder_may_be_moved_and_may_lack_the_other_split(copy, tmp_path):
    copy.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "valid-00000000.npy").unlink()
    np.testing.assert_array_equal(PreparedRows(tmp_path / "elsewhere")[[9]], ROWS["train"][[9]])


@pytest.mark.parametrize(
    "shard",
    [
        np.full((3, LENGTH), 500, "uint16"),  # no id of this vocabulary
        np.zeros((3, LENGTH + 1), "uint16"),
        np.zeros((3, LENGTH), "int64"),
        np.zeros(LENGTH, "uint16"),
        np.uint16(7),
        np.zeros((3, LENGTH, 1), "uint16"),
        np.array([[{"a": 1}] * LENGTH], object),
        b"",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00G\x00{'descr': '<u2', 'fortran_order': False, 'shape': (9999999, 32)}\n",
        b"\x93NUMPY\x01\x00\x10\x00((((((((((((((((",
    ],
    ids=range(11),
)
def test_a_shard_that_holds_no_rows_of_this_vocabulary_is_refused(copy, shard):
    path = copy / "train-00000002.npy"
    if isinstance(shard, bytes):
        path.write_bytes(shard)
    else:
        np.save(path, shard)
    edit(copy)
    with pytest.raises(ValueError, match=rf"rows of 32 integers from 0 to 499\..*{path.name}'$"):
        PreparedRows(copy)


def test_a_record_with_another_number_of_rows_is_refused(copy):
    edit(copy, lambda record: record["splits"]["train"].update(rows=451))
    with pytest.raises(ValueError, match="number of rows of 'train' is not that of the shards"):
        PreparedRows(copy)


def flipped(content, place, bit):
    damaged = bytearray(content)
    damaged[place] ^= 1 << bit
    return bytes(damaged)


def test_every_flipped_bit_of_the_record_is_refused(copy):
    path = copy / "preparation.json"
    content = path.read_bytes()
    assert json.loads(content) == {**read_sealed_json(path), "seal": json.loads(content)["seal"]}
    write_json(path, read_sealed_json(path))
    with pytest.raises(ValueError, match="not what was written"):
        read_sealed_json(path)
    places = [*itertools.product(range(len(content)), range(8))]
    assert is_sealed(content)
    assert not any(is_sealed(flipped(content, *place)) for place in places)
    wrong = [flipped(content, *place) for place in places[::101]]
    wrong += [content + b"\n", content[:-1], content[1:], content + content, content[:-2]]
    wrong += [b"", b"[]", b"{}", b"null", b"{", b"\xff", b'{"format": 3}']
    for damaged in wrong:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"preparation\.json'$"):
            PreparedRows(copy)


@pytest.mark.parametrize("name", ["train-00000004.npy", "vocabulary.txt"])
def test_flipped_bits_and_lost_ends_of_files_are_found_at_once(copy, name):
    path = copy / name
    content, places = path.read_bytes(), np.random.default_rng(3)
    damaged = [content[:size] for size in (0, 1, 127, 1000, -1)] + [content + b"\0"]
    for place in places.choice(len(content), 101, replace=False):
        damaged.append(flipped(content, place, place % 8))
    for one in damaged:
        path.write_bytes(one)
        with pytest.raises(ValueError, match=rf"not the one that was written.*{name}'$"):
            PreparedRows(copy)


@pytest.mark.slow
def test_ten_thousand_flipped_bits_are_found(copy):
    chance = np.random.default_rng(5)
    contents = {path: path.read_bytes() for path in copy.iterdir() if "valid" not in path.name}
    sizes = np.array([len(content) for content in contents.values()])
    for path in chance.choice([*contents], 10_000, p=sizes / sizes.sum()):
        place, bit = chance.integers(len(contents[path])), int(chance.integers(8))
        path.write_bytes(flipped(contents[path], place, bit))
        with pytest.raises(ValueError, match=re.escape(path.name)):
            PreparedRows(copy)
        path.write_bytes(contents[path])
    PreparedRows(copy)


def test_the_seal_holds_the_hash_of_every_file(tmp_path):
    for name, content in {"a.txt": b"", "b.bin": bytes(range(256)) * 9001, ".hidden": b"x"}.items():
        (tmp_path / name).write_bytes(content)
    hashes = {path.name: file_hash(path) for path in tmp_path.iterdir()}
    seal(tmp_path, {"command": "caf\u00e9", "length": 7})
    found = record_of(tmp_path)
    del found["seal"]
    assert found == {"format": 3, "command": "caf\u00e9", "length": 7, "sha256": hashes}
    assert len(list(tmp_path.iterdir())) == 4  # nothing unfinished
