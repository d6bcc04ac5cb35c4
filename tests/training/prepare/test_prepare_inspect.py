"""What is in a prepared folder is told, and every change of its files is found."""

import random
import re

import commands
import prepare_cases as cases
import pytest
from prepare_cases import documents, files, record, rows, run


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """One prepared folder for the tests that only look at it."""
    folder = tmp_path_factory.mktemp("prepared")
    source = cases.write_text(folder / "corpus.txt", documents())
    return run(folder / "rows", source, more=["--block-bytes", 4999])


def test_describe_prints_statistics_the_command_and_rows_as_text(prepared):
    printed = commands.done("prepare", "--describe", prepared)
    found = record(prepared)
    assert printed.startswith(f"made by: {found['command']}\n{prepared}: rows of 29 tokens")
    for name in ("documents", "rows", "padding_tokens"):
        counts = [f"{found['splits'][part][name]:,}" for part in ("train", "valid")]
        line = next(
            one for one in printed.split("\n") if one.startswith(f"| {name} ".replace("_", " "))
        )
        assert [cell.strip() for cell in line.split("|")[2:4]] == counts
    assert "duplicate documents dropped: 0; bad documents skipped: 0" in printed
    pieces = (prepared / "vocabulary.txt").read_text("utf-8").split()
    for part in ("train", "valid"):
        for number, row in enumerate(rows(prepared, part)[:3]):
            words = [pieces[token] for token in row if token > 4 and token < len(pieces)]
            line = printed.split(f"\n{part} row {number}: ")[1].split("\n")[0]
            assert (
                line.split()[-3:]
                == "".join(f" {word}" for word in words).replace(" ##", "").split()[-3:]
            )
            in_pieces = " ".join(pieces[token] for token in row[:30])
            assert f"\nit begins with the pieces: {in_pieces}\n" in printed


@pytest.mark.parametrize("lines", [None, "not JSON", "[]", "{}", '{"format": 1}'])
@pytest.mark.parametrize("task", ["--describe", "--verify"])
def test_a_folder_without_a_good_record_is_refused(task, lines, tmp_path):
    if lines is not None:
        (tmp_path / "preparation.json").write_text(lines)
    told = commands.refusal("prepare", task, tmp_path, code=1)
    assert re.match(f"prepare: .*Received: .*{tmp_path.name}", told)


def test_every_flipped_bit_and_every_missing_file_is_found(prepared, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    originals = {path.name: path.read_bytes() for path in prepared.iterdir()}
    for name, content in originals.items():
        (folder / name).write_bytes(content)
    told = commands.done("prepare", "--verify", folder)
    assert told == f"{folder}: all {len(files(prepared))} files are what was written.\n"
    rng = random.Random(13)
    for name in files(prepared):
        content = bytearray(originals[name])
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        for broken in (bytes(content), originals[name][:-1], None):
            if broken is None:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes(broken)
            told = commands.refusal("prepare", "--verify", folder, code=1)
            assert re.search(f"{name} (is missing|has changed)$", told)
        (folder / name).write_bytes(originals[name])
    (folder / "train-00000001.npy").write_bytes(originals["train-00000001.npy"][::-1])
    (folder / "valid-00000000.npy").unlink()
    (folder / "extra").mkdir()
    told = commands.refusal("prepare", "--verify", folder, code=1)
    assert told.startswith("prepare: The folder is not what was written. ")
    assert told.endswith(
        f"Received: {str(folder)!r}: valid-00000000.npy is missing; extra does not belong here; "
        "train-00000001.npy has changed"
    )
