"""A preparation that was stopped goes on where it was, and ends as if it had not been."""

import json
import random
import shutil

import commands
import prepare_cases as cases
import pytest
from prepare_cases import documents, facts, failure, files, run

from training.prepare import documents as prepare_documents
from training.prepare import folder as prepare_folder
from training.prepare import rows

TEXTS = [text.strip() for text in documents(number=613)]
MORE = ["--block-bytes", 9001, "--skip-bad"]
# What is called while a stage is under way.
STAGES = {
    "reading": (prepare_documents, "clean_text"),
    "counting": (rows.WordCounts, "add"),
    "training": (rows, "wordpiece_from_counts"),
    "packing": (rows, "write_block"),
    "recording": (rows, "finished"),
    "moving": (prepare_folder, "move_into_place"),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Five files, and what an undisturbed run makes of them."""
    folder = tmp_path_factory.mktemp("corpus")
    shuffled = ["", *random.Random(3).sample(TEXTS, 173), TEXTS[5]]
    (folder / "in").mkdir()
    for number in range(5):
        cases.write_jsonl(folder / "in" / f"{number}.jsonl", shuffled[number::5])
    run(folder / "whole", folder / "in", more=MORE)
    return folder


def stopped(monkeypatch, corpus, out, stage, calls):
    """Runs the command as if somebody pressed Ctrl-C at the nth call of a stage's function."""
    owner, name = STAGES[stage]
    function, left = getattr(owner, name), [calls]

    def counted(*args, **kwargs):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return function(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, counted)
        ended = commands.run("prepare", *cases.words(out, corpus / "in", more=MORE))
    assert ended.code == 130
    assert ended.err == "prepare: stopped. The same command goes on from here.\n"
    assert not out.exists()
    assert out.with_name(f"{out.name}.unfinished").exists()


def check_the_rest(corpus, out):
    run(out, corpus / "in", more=MORE)
    assert files(out) == files(corpus / "whole")
    assert facts(out) == facts(corpus / "whole")


STOPS = [("reading", 113), ("counting", 70), ("training", 1), ("packing", 5), ("packing", 3)]
STOPS += [("recording", 1), ("moving", 1)]


def test_a_run_may_be_stopped_again_and_again(corpus, monkeypatch, tmp_path):
    for stage, calls in STOPS:
        stopped(monkeypatch, corpus, tmp_path / "rows", stage, calls)
    check_the_rest(corpus, tmp_path / "rows")


def test_what_was_done_is_not_done_again(corpus, monkeypatch, tmp_path):
    work = tmp_path / "rows.unfinished"

    def times():
        names = [*work.glob("dataset/*"), work / "vocabulary", work / "documents" / "read.json"]
        return {path.name: path.stat().st_mtime_ns for path in names}

    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 4)
    first = times()
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 4)
    second = times()
    assert (len(first), len(second)) == (3 + 2, 6 + 2)
    assert first.items() < second.items()
    stopped(monkeypatch, corpus, tmp_path / "rows", "recording", 1)
    assert second.items() < times().items()


def test_unfinished_work_of_other_settings_is_left_alone(corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 3)
    work = tmp_path / "rows.unfinished"
    assert json.loads((work / "settings.json").read_text())["length"] == 29
    message = failure(tmp_path / "rows", corpus / "in", more=[*MORE, "--length", 31])
    assert message.startswith("prepare: The folder was begun by a command with other settings.")
    assert message.endswith(f"Received: {str(work)!r}, which differs in: length: 29 -> 31")
    check_the_rest(corpus, tmp_path / "rows")


def test_half_removed_work_is_not_taken_for_work_to_go_on(corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 3)
    work = tmp_path / "rows.unfinished"
    (work / "settings.json").unlink()  # the first step of a removal, as if killed after it
    for path in work.glob("documents/a*"):
        path.unlink()
    check_the_rest(corpus, tmp_path / "rows")


@pytest.mark.parametrize("damage", ["other", "shorter", "missing"])
def test_damaged_documents_are_removed_and_told(damage, corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "counting", 3)
    buckets = (tmp_path / "rows.unfinished" / "documents").glob("*.jsonl")
    path = max(buckets, key=lambda path: path.stat().st_size)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(bytes(path.stat().st_size) if damage == "other" else b"")
    message = failure(tmp_path / "rows", corpus / "in", more=MORE)
    assert message.startswith("prepare: The unfinished work on disk was damaged")
    assert message.endswith(f"Received: {str(path)!r}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["settings.json", "documents/read.json"])
def test_a_flipped_bit_of_a_record_of_unfinished_work_is_refused(
    name, corpus, monkeypatch, tmp_path
):
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 3)
    path = tmp_path / "rows.unfinished" / name
    content = bytearray(path.read_bytes())
    place = next(place for place in range(50, len(content)) if content[place] in b"1239")
    content[place] ^= 4  # another digit
    path.write_bytes(content)
    message = failure(tmp_path / "rows", corpus / "in", more=MORE)
    assert "damaged" in message
    assert "rows.unfinished" in message


@pytest.mark.parametrize("name", ["dataset/train-00000000.npy", "train-00000001-*.json"])
def test_a_block_that_has_changed_is_packed_again(name, corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "recording", 1)
    (path,) = (tmp_path / "rows.unfinished").glob(name)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (tmp_path / "rows.unfinished" / "dataset" / ".unfinished-x").touch()
    check_the_rest(corpus, tmp_path / "rows")


def test_blocks_of_a_vocabulary_that_has_changed_are_packed_again(corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 5)
    path = tmp_path / "rows.unfinished" / "vocabulary"
    pieces = path.read_text("utf-8").split("\n")
    pieces[-3:-1] = pieces[-2:-4:-1]
    path.write_text("\n".join(pieces), "utf-8")
    run(tmp_path / "rows", corpus / "in", more=MORE)
    swapped, options = tmp_path / "rows" / "vocabulary.txt", cases.OPTIONS[2:]
    again = run(
        tmp_path / "again",
        corpus / "in",
        options=["--vocabulary", str(swapped), *options],
        more=MORE,
    )
    assert files(again) == files(tmp_path / "rows") != files(corpus / "whole")


def test_documents_that_are_lost_or_packed_twice_stop_the_work():
    rows.check_complete({"train": {"documents": 5}, "valid": {"documents": 2}}, 7)
    for number in (6, 8):
        with pytest.raises(RuntimeError, match=f"Received: 7 documents packed, {number} read$"):
            rows.check_complete({"train": {"documents": 7}}, number)


def test_work_left_by_a_run_that_was_killed_at_its_very_end_is_removed(
    corpus, monkeypatch, tmp_path
):
    stopped(monkeypatch, corpus, tmp_path / "rows", "moving", 1)
    shutil.copytree(tmp_path / "rows.unfinished", tmp_path / "kept")
    check_the_rest(corpus, tmp_path / "rows")
    (tmp_path / "kept").rename(tmp_path / "rows.unfinished")
    check_the_rest(corpus, tmp_path / "rows")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


@pytest.mark.parametrize("names", [[".lock"], [".lock", "documents"], []])
def test_a_removal_that_was_killed_is_ended_when_the_output_is_complete(corpus, tmp_path, names):
    out = tmp_path / "rows"
    run(out, corpus / "in", more=MORE)
    work = tmp_path / "rows.unfinished"
    work.mkdir()
    for name in names:
        (work / name).touch()
    run(out, corpus / "in", more=MORE)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
