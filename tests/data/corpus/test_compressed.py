"""Compressed files: read to the last byte, and never shorter than they were written."""

import functools
import itertools
import random
import tracemalloc

import pytest
import zstandard
from compressed_cases import COMPRESS

from keras_tupe.data import find_sources, read_source
from keras_tupe.data.corpus._compressed import COMPRESSIONS, open_binary

SUFFIXES = pytest.mark.parametrize("suffix", COMPRESSIONS)


@pytest.fixture(scope="module")
def content():
    """Two megabytes that compress badly, so that all buffers are filled several times."""
    rng = random.Random(17)
    words = [f"{rng.getrandbits(70):x}" for _ in range(120_001)]
    return "".join(word + rng.choice((" ", "\n", "\n\n")) for word in words).encode()


@pytest.fixture(scope="module")
def compressed(content):
    """A function of a suffix: those two megabytes as a file of that kind holds them."""
    return functools.cache(lambda suffix: COMPRESS[suffix](content))


def read_all(path):
    with open_binary(path) as (reader, _):
        return b"".join(reader)


def problems(path):
    (source,) = find_sources([str(path)], format="text")
    return [document.message for document in read_source(source) if document.problem]


@SUFFIXES
@pytest.mark.parametrize("filling", [b"", bytes(512)], ids=len)
def test_all_frames_are_read_to_the_end_and_the_file_is_told_as_it_is_read(
    content, suffix, filling, tmp_path
):
    cuts = [0, 1, 1, 700_001, 1_500_007, len(content)]
    frames = [COMPRESS[suffix](content[a:b]) + filling for a, b in itertools.pairwise(cuts)]
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(b"".join(frames))
    assert read_all(path) == content
    told = []
    (source,) = find_sources([str(path)], format="text")
    for _ in read_source(source, advance=told.append):
        pass
    assert sum(told) == path.stat().st_size
    assert len(told) > 3
    assert min(told) >= 0


def test_zstandard_frames_without_their_size_and_frames_to_skip_are_read(content, tmp_path):
    stream = zstandard.ZstdCompressor().compressobj()
    frame = stream.compress(content) + stream.flush()
    skippable = (0x184D2A51).to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"
    path = tmp_path / "corpus.zst"
    path.write_bytes(skippable + frame + skippable + frame)
    assert read_all(path) == content * 2


def test_zstandard_with_the_largest_window_is_read(content, tmp_path):
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=31)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "corpus.zst"  # as zstd --long=31 writes it
    path.write_bytes(stream.compress(content) + stream.flush())
    assert read_all(path) == content


@SUFFIXES
@pytest.mark.parametrize(
    "share", [0.0003, pytest.param(0.29, marks=pytest.mark.slow), 0.71, 0.99999]
)
def test_a_file_that_is_cut_off_is_told_after_what_could_be_read(
    content, compressed, suffix, share, tmp_path
):
    whole = compressed(suffix)
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(whole[: max(5, int(len(whole) * share))])
    (source,) = find_sources([str(path)])
    *documents, last = read_source(source)
    assert last.message.startswith("The compressed file is cut off or damaged (")
    assert last.message.split("Received: ")[1].startswith(f"{path}, after line ")
    assert not any(document.problem for document in documents)
    complete = content.decode().split("\n\n")
    assert [d.text.rstrip("\n") for d in documents] == complete[: len(documents)]
    lost = 1_000_000 if suffix == ".bz2" else 150_000  # a block of each method
    assert sum(len(document.text) for document in documents) > share * len(content) - lost


@SUFFIXES
def test_a_file_cut_off_between_or_inside_frames(content, suffix, tmp_path):
    frame = COMPRESS[suffix](content[:100_003])
    path = tmp_path / f"corpus{suffix}"
    for cut in (1, 3, 11, len(frame) // 2, len(frame) - 1):
        path.write_bytes(frame + frame[:cut])
        assert len(problems(path)) == 1, cut
    path.write_bytes(frame + frame)
    assert problems(path) == []


@SUFFIXES
def test_a_flipped_bit_is_a_problem_or_is_no_change(content, suffix, tmp_path):
    text = content[:300_007]
    whole = bytearray(COMPRESS[suffix](text))
    if suffix == ".zst":  # the command line tool adds a check sum, the library only if asked
        whole = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(text))
    rng, path, found = random.Random(19), tmp_path / f"corpus{suffix}", 0
    for _ in range(23):
        position = rng.randrange(len(whole))
        damaged = whole.copy()
        damaged[position] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        if problems(path):
            found += 1
        else:
            assert read_all(path) == text, position
    assert found > 17


@SUFFIXES
def test_other_bytes_under_the_suffix_are_a_problem(suffix, tmp_path):
    path = tmp_path / f"corpus{suffix}"
    for frame in (b"", COMPRESS[suffix](b"This is text.\n")):
        path.write_bytes(frame + b"This is plain text.\n\nAnd more of it.\n" * 31)
        (message,) = problems(path)
        assert message.startswith("The compressed file is cut off or damaged (")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_much_text_in_few_compressed_bytes_needs_little_memory(suffix, tmp_path):
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(COMPRESS[suffix](b"a line of text\n" * 6_000_000))
    tracemalloc.start()
    with open_binary(path) as (reader, _):
        assert sum(map(len, iter(lambda: reader.read(2**16), b""))) == 90_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
