"""Files that are whole or not there."""

import json
import os

import pytest

from keras_tupe.data.rows.json_record import write_json


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
