"""Files that are whole or not there, and records of which no bit may change."""

import json
import os

import pytest

from keras_tupe.data.rows.json_record import read_sealed_json, write_json, write_sealed_json


def test_json_replaces_what_was_there_and_keeps_names_that_are_no_unicode(tmp_path):
    path = tmp_path / "record.json"
    for record in ({"a": [1, 2**256, None]}, {"name": os.fsdecode(b"caf\xe9.txt"), "\u00e9": True}):
        write_json(path, record)
        assert json.loads(path.read_text("utf-8")) == record
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["not JSON", "a folder in the way"])
def test_what_cannot_be_written_leaves_things_as_they_were(kind, tmp_path):
    path = tmp_path / "record.json"
    if kind == "not JSON":
        write_json(path, {"a": 1})
        with pytest.raises(TypeError, match="not JSON serializable"):
            write_json(path, {"a": object()})
        assert json.loads(path.read_text("utf-8")) == {"a": 1}
    else:
        path.mkdir()
        with pytest.raises(OSError, match="directory"):
            write_json(path, {"a": 1})
    assert list(tmp_path.iterdir()) == [path]


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
