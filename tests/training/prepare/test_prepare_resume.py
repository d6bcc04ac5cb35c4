"""A preparation that was stopped goes on where it was, and ends as if it had not been."""

import collections
import json
import pathlib
import random
import shutil

import commands
import prepare_cases as cases
import pytest
from prepare_cases import documents, facts, failure, files, run

from training.prepare import finish, spill
from training.prepare.plan import Plan

TEXTS = [text.strip() for text in documents(number=613)]


@pytest.fixture
def every_commit_counts(monkeypatch):
    monkeypatch.setattr(spill, "_BYTES_PER_COMMIT", 1)


class Stop:
    """A progress function that behaves as if somebody pressed Ctrl-C at its nth call."""

    def __init__(self, calls):
        self.calls = calls
        self.documents = 0

    def __call__(self, *numbers):
        if len(numbers) == 3:
            self.documents += numbers[1]
        self.calls -= 1
        if self.calls == 0:
            raise KeyboardInterrupt

    def wrap(self, items):
        for item in items:
            self()
            yield item


def stop_at(monkeypatch, stage, calls):
    """Makes the next preparation stop in a stage: reading, counting, packing or writing."""
    stop = Stop(calls)
    patches = {
        "reading": lambda *_: stop,
        "counting": lambda _, buckets: stop.wrap(buckets),
        "packing": lambda *_: stop,
        "writing": lambda *_: stop.wrap,
    }
    monkeypatch.setattr(Plan, stage, patches[stage])
    return stop


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


MORE = ["--block-bytes", 9001, "--skip-bad"]
STOPS = [("reading", 1), ("reading", 113), ("counting", 1), ("counting", 255)]
STOPS += [("packing", 1), ("packing", 5), ("writing", 1), ("writing", 6)]


def stopped(monkeypatch, corpus, out, stage, calls):
    with monkeypatch.context() as patch:
        stop = stop_at(patch, stage, calls)
        ended = commands.run("prepare", *cases.words(out, corpus / "in", more=MORE))
    assert ended.code == 130
    assert ended.err == "prepare: stopped. The same command goes on from here.\n"
    assert not out.exists()
    assert out.with_name(f"{out.name}.unfinished").exists()
    return stop


def check_the_rest(corpus, out):
    run(out, corpus / "in", more=MORE)
    assert files(out) == files(corpus / "whole")
    assert facts(out) == facts(corpus / "whole")


@pytest.mark.parametrize(
    ("stage", "calls"),
    # the first of each stage is also among the stops of the test below
    [pytest.param(*stop, marks=pytest.mark.slow if stop[1] == 1 else ()) for stop in STOPS],
)
def test_a_run_that_was_stopped_ends_as_if_it_had_not(
    stage, calls, corpus, every_commit_counts, monkeypatch, tmp_path
):
    stopped(monkeypatch, corpus, tmp_path / "rows", stage, calls)
    check_the_rest(corpus, tmp_path / "rows")


def test_a_run_may_be_stopped_again_and_again(corpus, every_commit_counts, monkeypatch, tmp_path):
    for stage, calls in STOPS:
        stopped(monkeypatch, corpus, tmp_path / "rows", stage, calls)
    check_the_rest(corpus, tmp_path / "rows")


def test_files_that_were_read_are_not_read_again(
    corpus, every_commit_counts, monkeypatch, tmp_path
):
    sizes = [len((corpus / "in" / f"{n}.jsonl").read_text().splitlines()) for n in range(5)]
    first = stopped(monkeypatch, corpus, tmp_path / "rows", "reading", sum(sizes[:3]) + 7)
    assert sum(sizes[:3]) - 5 < first.documents < sum(sizes[:4])
    with monkeypatch.context() as patch:
        second = stop_at(patch, "reading", 10_000)
        check_the_rest(corpus, tmp_path / "rows")
    assert second.documents == sum(sizes[3:])


def test_what_was_done_is_not_done_again(corpus, monkeypatch, tmp_path):
    work = tmp_path / "rows.unfinished"

    def times():
        names = [*work.glob("rows/*.npy"), work / "vocabulary", work / "documents" / "journal.json"]
        return {path.name: path.stat().st_mtime_ns for path in names}

    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 3)
    first = times()
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 6)
    second = times()
    assert (len(first), len(second)) == (3 + 2, 6 + 2)
    assert first.items() < second.items()
    stopped(monkeypatch, corpus, tmp_path / "rows", "writing", 2)
    assert second.items() < times().items()


def test_unfinished_work_of_other_settings_is_left_alone(corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 3)
    work = tmp_path / "rows.unfinished"
    message = failure(tmp_path / "rows", corpus / "in", more=[*MORE, "--length", 31])
    assert message.startswith("prepare: The folder was begun by a command with other settings.")
    assert message.endswith(f"Received: {str(work)!r}, which differs in: length 29 there, 31 here")
    check_the_rest(corpus, tmp_path / "rows")


def test_half_removed_work_is_not_taken_for_work_to_go_on(corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 3)
    work = tmp_path / "rows.unfinished"
    (work / "settings.json").unlink()  # the first step of a removal, as if killed after it
    collections.deque(path.unlink() for path in work.glob("documents/a*"))
    check_the_rest(corpus, tmp_path / "rows")


def test_damaged_work_is_removed_and_told(corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "counting", 3)
    texts = [
        path for path in tmp_path.glob("rows.unfinished/documents/*.text") if path.stat().st_size
    ]
    texts[-1].write_bytes(bytes(texts[-1].stat().st_size))
    message = failure(tmp_path / "rows", corpus / "in", more=MORE)
    assert message.startswith("prepare: The unfinished work on disk was damaged")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("part", ["train", "valid"])
def test_packed_rows_that_have_changed_are_told(part, corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "writing", 1)
    path = tmp_path / "rows.unfinished" / "rows" / f"{part}-00000000.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    message = failure(tmp_path / "rows", corpus / "in", more=MORE)
    assert message.startswith("prepare: The rows that were read back are not those packed.")
    assert f"Received: part={part!r}" in message
    assert not (tmp_path / "rows").exists()


def test_documents_that_are_lost_or_packed_twice_stop_the_work():
    finish.check_complete({"train": {"documents": 5}, "valid": {"documents": 2}}, 7)
    for number in (6, 8):
        with pytest.raises(RuntimeError, match=f"Received: 7 documents packed, {number} read$"):
            finish.check_complete({"train": {"documents": 7}}, number)


def test_work_left_by_a_run_that_was_killed_at_its_very_end_is_removed(
    corpus, monkeypatch, tmp_path
):
    stopped(monkeypatch, corpus, tmp_path / "rows", "writing", 2)
    (tmp_path / "rows.unfinished").rename(tmp_path / "kept")
    check_the_rest(corpus, tmp_path / "rows")
    (tmp_path / "kept").rename(tmp_path / "rows.unfinished")
    check_the_rest(corpus, tmp_path / "rows")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_settings_are_kept_beside_the_work(corpus, monkeypatch, tmp_path):
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 1)
    settings = json.loads((tmp_path / "rows.unfinished" / "settings.json").read_text())
    assert settings["length"] == 29
    assert len(settings["input"]) == 5


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


def test_unfinished_work_with_a_flipped_bit_is_refused(corpus, monkeypatch, tmp_path):
    """A journal with other sizes would lose documents, other statistics would be written down."""
    stopped(monkeypatch, corpus, tmp_path / "rows", "packing", 3)
    for number, name in enumerate(
        ("settings.json", "documents/journal.json", "rows/train-00000001.json")
    ):
        out = tmp_path / str(number)
        work = out.with_name(f"{out.name}.unfinished")
        path = pathlib.Path(shutil.copytree(tmp_path / "rows.unfinished", work), name)
        content = bytearray(path.read_bytes())
        place = next(place for place in range(50, len(content)) if content[place] in b"1239")
        content[place] ^= 4  # another digit
        path.write_bytes(content)
        message = failure(out, corpus / "in", more=MORE)
        assert "damaged" in message, name
        assert str(work) in message
