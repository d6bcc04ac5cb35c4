"""Prepared rows: what was written is read, in any order and thread, or an error names the file."""

import concurrent.futures
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

from keras_tupe.data.rows._shard import Shard
from keras_tupe.data.rows.dataset_writer import file_hash, seal
from keras_tupe.data.rows.json_record import is_sealed, write_sealed_json
from keras_tupe.data.rows.masking import Masking
from keras_tupe.data.rows.prepared import PreparedRows
from keras_tupe.data.rows.rows import Rows

LENGTH = 32
ROWS = {
    "train": prepared_directories.make_rows(450, LENGTH),
    "valid": prepared_directories.make_rows(7, LENGTH, seed=1),
}
SHARDS = 5


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A directory with five shards for training and one for validation."""
    folder = tmp_path_factory.mktemp("prepared") / "rows"
    return prepared_directories.write_directory(folder, ROWS)


@pytest.fixture
def copy(prepared, tmp_path):
    return pathlib.Path(shutil.copytree(prepared, tmp_path / "copy"))


def shard_files(folder, split="train"):
    return sorted(folder.glob(f"packed_rows-{split}.*"))


@pytest.mark.parametrize("split", ROWS)
def test_rows_are_read_in_any_order_and_repeatedly(prepared, split):
    rows, expected = PreparedRows(prepared, split), ROWS[split]
    assert len(shard_files(prepared)) == SHARDS
    assert (len(rows), rows.length) == expected.shape
    everything = rows[np.arange(len(expected))]
    assert everything.dtype == np.int32
    np.testing.assert_array_equal(everything, expected)
    indices = np.random.default_rng(3).integers(0, len(expected), 1000)
    np.testing.assert_array_equal(rows[indices], expected[indices])
    np.testing.assert_array_equal(rows[[3, 3]], expected[[3, 3]])
    assert rows[np.arange(0)].shape == (0, LENGTH)


def test_shards_may_differ_in_size(tmp_path):
    part = {"train": ROWS["train"][:130]}
    folder = prepared_directories.write_directory(tmp_path / "rows", part, rows_per_shard=1000)
    rest = {"train": ROWS["train"][130:]}
    other = prepared_directories.write_directory(tmp_path / "rest", rest, rows_per_shard=1000)
    (shard,) = shard_files(other)
    shard.rename(folder / shard.name.replace("00000", "00001"))
    (folder / "preparation.json").unlink()
    info = json.loads((folder / "dataset_info.json").read_text("utf-8"))
    info["splits"][0]["shardLengths"] = ["130", "320"]
    (folder / "dataset_info.json").write_text(json.dumps(info), "utf-8")
    record = json.loads((other / "preparation.json").read_text("utf-8"))
    seal(folder, record | {"splits": {"train": {"rows": 450}}})
    indices = np.random.default_rng(3).permutation(450)
    np.testing.assert_array_equal(PreparedRows(folder)[indices], ROWS["train"][indices])


def test_tfds_reads_the_same(prepared, tensorflow):
    tfds = pytest.importorskip("tensorflow_datasets")
    source = tfds.builder_from_directory(prepared).as_data_source("train")
    read = np.stack([element["token_ids"] for element in source])
    np.testing.assert_array_equal(read, PreparedRows(prepared)[np.arange(450)])


def test_batches_are_those_of_the_rows_in_memory(prepared):
    rows = PreparedRows(prepared)
    from_files = Rows(rows, rows.masking(), batch_size=16, seed=3).batch(77)
    from_memory = Rows(ROWS["train"], rows.masking(), batch_size=16, seed=3).batch(77)
    for one, other in zip(from_files[1:], from_memory[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(from_files[0]["token_ids"], from_memory[0]["token_ids"])


def test_threads_may_read_at_once(prepared):
    rows, generator = PreparedRows(prepared), np.random.default_rng(5)
    jobs = [generator.integers(0, 450, 40) for _ in range(200)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for indices, found in zip(jobs, pool.map(rows.__getitem__, jobs), strict=True):
            np.testing.assert_array_equal(found, ROWS["train"][indices])


def test_rows_can_be_sent_to_another_process(prepared):
    rows = PreparedRows(prepared)
    indices = np.array([449, 0, 123])
    expected = rows[indices]  # opened before
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(rows))[indices], expected)


PROCESSES = """
import multiprocessing, sys, warnings
import numpy as np
from training.command.without_keras import without_keras

warnings.simplefilter("ignore")
indices = np.arange(0, 450, 7)

def read(rows):
    try:
        return rows[indices]
    except RuntimeError as error:
        return str(error)

def main():
    from keras_tupe.data.rows.prepared import PreparedRows

    rows = PreparedRows(sys.argv[1])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        before = pool.map(read, [rows] * 4)
    expected = rows[indices]
    assert all((found == expected).all() for found in before)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        refused = pool.map(read, [rows] * 4)
    assert all("forked after rows were read" in message for message in refused), refused
    assert not {"keras", "tensorflow", "tensorflow_datasets"} & set(sys.modules)

if __name__ == "__main__":
    with without_keras():
        main()
"""


def test_other_processes_read_the_same_or_say_why_not(prepared, tmp_path):
    script = tmp_path / "processes.py"
    script.write_text(PROCESSES, "utf-8")
    root = pathlib.Path(__file__).resolve().parents[3]
    python(script, prepared, environment={"PYTHONPATH": str(root)})


def test_the_masking_is_that_of_the_vocabulary(prepared):
    rows, pieces = PreparedRows(prepared), prepared_directories.pieces()
    expected = Masking(500, mask_id=4, pad_id=0, special_ids=(1, 2, 3))
    assert rows.masking() == expected
    assert rows.masking(rate=0.3, max_masked=5) == Masking(500, 4, 0, (1, 2, 3), 0.3, 5)
    of_words = rows.masking(whole_word=True).begins_word
    assert of_words == tuple(not piece.startswith("##") for piece in pieces)
    assert rows.vocabulary.pieces == tuple(pieces)
    assert (rows.vocabulary.start_id, rows.vocabulary.lowercase) == (2, True)


def test_whole_words_of_a_sentencepiece_vocabulary(tmp_path):
    model = prepared_directories.sentencepiece_model()
    folder = prepared_directories.write_directory(tmp_path / "rows", {"train": ROWS["train"]})
    (folder / "vocabulary.txt").unlink()
    (folder / "vocabulary.spm").write_bytes(model)
    edit(folder, _use_sentencepiece)
    with pytest.raises(ValueError, match=r"the vocabulary has \d+ pieces") as caught:
        PreparedRows(folder)
    size = int(re.search(r"(\d+) pieces", str(caught.value))[1])
    edit(folder, lambda record: record["vocabulary"].update(size=size))
    rows = PreparedRows(folder)
    starts = rows.vocabulary.begins_word
    assert len(starts) == size
    assert sum(starts) > 10
    for piece, begins in zip(rows.vocabulary.pieces, starts, strict=True):
        assert begins == (piece[0] == "\u2581")
    assert "<0x00>" in rows.vocabulary.pieces


def _use_sentencepiece(record):
    del record["sha256"]["vocabulary.txt"]
    record["vocabulary"].update(kind="sentencepiece", file="vocabulary.spm", size=1)


def edit(folder, change):
    """Changes the record and rehashes the vocabulary."""
    path = folder / "preparation.json"
    record = json.loads(path.read_text("utf-8"))
    change(record)
    digest = file_hash(folder / record["vocabulary"]["file"])
    record["vocabulary"]["sha256"] = record["sha256"][record["vocabulary"]["file"]] = digest
    del record["seal"]
    write_sealed_json(path, record)


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


def test_an_unknown_split_is_refused(prepared):
    message = r"one of \['train', 'valid'\]. Received: split='test'"
    with pytest.raises(ValueError, match=message):
        PreparedRows(prepared, "test")


def test_a_split_without_rows_is_no_split(tmp_path):
    folder = prepared_directories.write_directory(
        tmp_path / "rows", {"train": ROWS["train"], "valid": np.zeros((0, LENGTH), "int32")}
    )
    assert len(PreparedRows(folder)) == 450
    with pytest.raises(ValueError, match=r"one of \['train'\]"):
        PreparedRows(folder, "valid")


def test_a_directory_of_something_else_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match=r"training.prepare.*Received: directory="):
            PreparedRows(folder)


def test_an_unfinished_directory_is_refused(copy, tmp_path):
    (copy / "preparation.json").unlink()
    (tmp_path / "soon.unfinished").mkdir()
    for folder in (copy, tmp_path / "soon"):
        with pytest.raises(FileNotFoundError, match="has not finished"):
            PreparedRows(folder)


def test_another_format_is_refused(copy):
    edit(copy, lambda record: record.update(format=3))
    with pytest.raises(ValueError, match=r"reads format 2: .*Received: format=3 in "):
        PreparedRows(copy)


def test_rows_whose_order_was_not_told_are_refused(copy):
    """Format 1 of the first version: no seal, no hash of the order."""
    path = copy / "preparation.json"
    record = json.loads(path.read_text("utf-8"))
    del record["seal"]
    path.write_text(json.dumps({**record, "format": 1}, indent=1) + "\n", "utf-8")
    with pytest.raises(ValueError, match=r"the same command without --runner .*format=1 in "):
        PreparedRows(copy)


def test_another_vocabulary_is_refused(copy):
    file = copy / "vocabulary.txt"
    file.write_text(file.read_text("utf-8").replace("w7", "v7"), "utf-8")
    with pytest.raises(ValueError, match=r"not the one that was written.*vocabulary\.txt'$"):
        PreparedRows(copy)


@pytest.mark.parametrize("name", ["packed_rows-train.array_record-00003", "vocabulary.txt"])
def test_a_missing_or_renamed_file_is_found_at_once(copy, name):
    (copy / name).rename(copy / "other")
    with pytest.raises(FileNotFoundError, match=rf"missing or have another name.*{name}"):
        PreparedRows(copy)


def test_a_shard_that_vanishes_later_is_named(copy):
    rows = PreparedRows(copy)
    shard_files(copy)[4].unlink()
    np.testing.assert_array_equal(rows[[5]], ROWS["train"][[5]])
    with pytest.raises(FileNotFoundError, match="array_record-00004"):
        rows[[5, 449]]


def test_a_directory_may_be_moved(copy, tmp_path):
    copy.rename(tmp_path / "elsewhere")
    np.testing.assert_array_equal(PreparedRows(tmp_path / "elsewhere")[[9]], ROWS["train"][[9]])


def test_a_shard_with_fewer_rows_is_named(copy):
    shards = shard_files(copy)
    shutil.copy(shards[4], shards[1])
    rows = PreparedRows(copy)
    message = r"has 50 rows, and 100 were written.*--verify .*array_record-00001'$"
    with pytest.raises(ValueError, match=message):
        rows[[150]]
    np.testing.assert_array_equal(rows[[50]], ROWS["train"][[50]])


def test_ids_that_are_not_of_the_vocabulary_are_refused_when_read(tmp_path):
    wrong = ROWS["train"].copy()
    wrong[250, 3] = 500
    folder = prepared_directories.write_directory(tmp_path / "rows", {"train": wrong})
    rows = PreparedRows(folder)
    np.testing.assert_array_equal(rows[[0, 449]], wrong[[0, 449]])
    with pytest.raises(ValueError, match=r"not from 0 to 499.*array_record-00002'$"):
        rows[[0, 250, 449]]


def test_rows_of_another_length_are_refused(copy):
    edit(copy, lambda record: record.update(length=LENGTH - 1))
    with pytest.raises(ValueError, match=r"not rows of 31 tokens.*array_record-00000'$"):
        PreparedRows(copy)[[0]]


def test_records_of_another_form_are_refused(copy):
    writing = pytest.importorskip("array_record.python.array_record_module")
    shard = shard_files(copy)[4]
    rows = PreparedRows(copy)
    writer = writing.ArrayRecordWriter(str(shard), "group_size:1")
    for row in ROWS["train"][400:]:
        writer.write(bytes(rows._shards[4]._prefix[::-1]) + row.tobytes())
    writer.close()
    with pytest.raises(ValueError, match=r"records have another form.*array_record-00004'$"):
        rows[[449]]


def test_a_record_with_another_number_of_rows_is_refused(copy):
    edit(copy, lambda record: record["splits"]["train"].update(rows=451))
    with pytest.raises(ValueError, match=r"differs from dataset_info\.json in the number of rows"):
        PreparedRows(copy)


def places_to_damage(size, generator):
    """Bytes of every part of a small shard."""
    block = np.arange(0, size, 2**16)
    parts = [
        np.arange(0, 400),  # the file's header, the first records' headers and content
        (block[:, np.newaxis] + np.arange(-8, 32)).ravel(),  # headers of blocks
        generator.integers(0, size, 1500),
        np.arange(2**16, 2**16 + 200),  # the index and the postscript
        size - 1 - np.arange(8),
    ]
    return np.unique(np.concatenate(parts).clip(0, size - 1))


def test_no_flipped_bit_changes_rows_silently(copy):
    path, expected = shard_files(copy)[4], ROWS["train"][400:]
    content, everything = path.read_bytes(), np.arange(50)
    messages, harmless, generator = [], 0, np.random.default_rng(7)
    with path.open("r+b") as file:
        for place in places_to_damage(len(content), generator):
            _put(file, place, content[place] ^ (1 << int(generator.integers(8))))
            try:
                rows = Shard(path, 50, LENGTH, 500).read(everything)
            except ValueError as error:
                messages.append(str(error))
            else:
                np.testing.assert_array_equal(rows, expected)
                harmless += 1
            _put(file, place, content[place])
    for message in messages:
        assert f"python -m training.prepare --verify {copy}." in message
        assert message.endswith(f"Received: {str(path)!r}")
    assert min(len(messages), harmless) > 100  # much of a small shard is filling


def _put(file, place, byte):
    file.seek(place)
    file.write(bytes([byte]))
    file.flush()


@pytest.mark.parametrize("size", [0, 1, 63, 64, 1000, 2**16, 2**16 + 70, -1])
def test_a_truncated_shard_is_named(copy, size):
    path = shard_files(copy)[2]
    path.write_bytes(path.read_bytes()[:size])
    rows = PreparedRows(copy)
    with pytest.raises(ValueError, match=r"not as it was written.*array_record-00002'$"):
        rows[np.arange(450)]
    np.testing.assert_array_equal(rows[np.arange(200)], ROWS["train"][:200])


def test_damage_after_the_first_read_is_found_and_repair_too(copy):
    rows, path = PreparedRows(copy), shard_files(copy)[0]
    everything = np.arange(100)
    np.testing.assert_array_equal(rows[everything], ROWS["train"][everything])
    content = path.read_bytes()
    with path.open("r+b") as file:
        _put(file, 3000, content[3000] ^ 1)
        with pytest.raises(ValueError, match="array_record-00000"):
            rows[everything]
        _put(file, 3000, content[3000])
    np.testing.assert_array_equal(rows[everything], ROWS["train"][everything])


def flipped(content, place, bit):
    damaged = bytearray(content)
    damaged[place] ^= 1 << bit
    return bytes(damaged)


def test_every_flipped_bit_of_the_record_is_refused(copy):
    path = copy / "preparation.json"
    content = path.read_bytes()
    places = [*itertools.product(range(len(content)), range(8))]
    assert is_sealed(content)
    assert not any(is_sealed(flipped(content, *place)) for place in places)
    wrong = [flipped(content, *place) for place in places[::101]]
    wrong += [content + b"\n", content[:-1], content[1:], content + content, content[:-2]]
    for damaged in wrong:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"preparation\.json'$"):
            PreparedRows(copy)


@pytest.mark.parametrize("name", ["dataset_info.json", "features.json", "vocabulary.txt"])
def test_a_flipped_bit_of_any_small_file_is_refused(copy, name):
    content = (copy / name).read_bytes()
    for place in np.random.default_rng(3).choice(len(content), 23, replace=False):
        (copy / name).write_bytes(flipped(content, place, place % 8))
        with pytest.raises(ValueError, match=rf"not the one that was written.*{name}'$"):
            PreparedRows(copy)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"null", b"{", b"\xff", b'{"format": 1}'])
def test_a_record_that_is_none_is_refused(copy, content):
    (copy / "preparation.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"preparation\.json'$"):
        PreparedRows(copy)
