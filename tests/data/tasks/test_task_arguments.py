"""Arguments of another type than the readers take: told with a sentence, for all of them alike."""

import pytest

from keras_tupe.data import read_blimp, read_glue, read_squad

READERS = {
    "path": [read_squad, read_blimp],
    "source": [lambda source, **options: read_glue("rte", source, "train", **options)],
}


@pytest.mark.parametrize("value", [None, 5, True, b"x", [], {}, object])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_path_is_told(name, value):
    for read in READERS[name]:
        with pytest.raises(TypeError, match=rf"`{name}` must be .*path.*Received: {name} of type"):
            read(value)


@pytest.mark.parametrize("value", [True, 0, "", (), {}, object])
@pytest.mark.parametrize("read", [read for readers in READERS.values() for read in readers])
def test_what_is_no_list_of_the_skipped_is_told(read, value, tmp_path):
    with pytest.raises(TypeError, match="`skipped` must be a list.*Received: skipped=.*"):
        read(tmp_path, skipped=value)
