"""Documents on disk: what comes back is what was added, also after a kill."""

import contextlib
import hashlib
import re
import resource

import numpy as np
import pytest
from prepare_cases import documents

from training.prepare import spill as prepare_spill
from training.prepare.spill import NUM_BUCKETS, Spill, digests

TEXTS = [text.strip() for text in documents(number=613)]
INTERVALS = [(0, NUM_BUCKETS), (0, 1), (255, 256), (37, 101)]


@pytest.fixture
def every_commit_counts(monkeypatch):
    monkeypatch.setattr(prepare_spill, "_BYTES_PER_COMMIT", 1)


def expected(texts, first, end):
    """`(digest, text)` of what belongs to some buckets, sorted, and the number of duplicates."""
    chosen = [(hashlib.sha256(text.encode()).digest(), text) for text in texts]
    chosen = [(digest, text) for digest, text in chosen if first <= digest[8] < end]
    return sorted(set(chosen)), len(chosen) - len(set(chosen))


def check(spill, texts):
    for first, end in INTERVALS:
        members, num_duplicates = expected(texts, first, end)
        entries, dropped = spill.index(first, end)
        assert dropped == num_duplicates
        assert digests(entries) == [digest for digest, _ in members]
        assert list(spill.documents(entries)) == [text for _, text in members]
        assert entries["size"].tolist() == [len(text.encode()) for _, text in members]
        assert entries["words"].tolist() == [len(text.split()) for _, text in members]
        assert entries["bucket"].tolist() == [digest[8] for digest, _ in members]


def test_documents_come_back_sorted_without_duplicates(tmp_path):
    texts = [*TEXTS, *TEXTS[:53], TEXTS[0]]
    spill = Spill(tmp_path / "spill")
    assert [spill.add(text) for text in texts] == [len(text.split()) for text in texts]
    spill.commit({"a": 1}, complete=True)
    check(spill, texts)
    again = Spill(tmp_path / "spill")
    assert (again.is_complete, again.state) == (True, {"a": 1})
    check(again, texts)
    entries, _ = again.index(0, NUM_BUCKETS)
    some = entries[np.arange(len(entries)) % 7 == 3]
    assert [text.encode() for text in again.documents(some)] == [
        text.encode() for text in list(again.documents(entries))[3::7]
    ]


def test_an_empty_spill_has_no_documents(tmp_path):
    with contextlib.closing(Spill(tmp_path / "spill")) as spill:
        assert (spill.state, spill.is_complete) == ({}, False)
        spill.commit({}, complete=True)
        check(spill, [])


@pytest.mark.parametrize("kept", [0, 1, 307, 613])
def test_what_was_not_committed_is_cut_off(kept, every_commit_counts, tmp_path):
    with contextlib.closing(Spill(tmp_path / "spill")) as spill:
        for text in TEXTS[:kept]:
            spill.add(text)
        spill.commit({"kept": kept})
        for text in ["more " * 3000, *TEXTS[kept:]]:
            spill.add(text)
    with contextlib.closing(Spill(tmp_path / "spill")) as spill:
        assert spill.is_complete is False
        assert spill.state == ({"kept": kept} if kept else {})
        for text in TEXTS[kept:]:
            spill.add(text)
        spill.commit({"kept": 613}, complete=True)
        check(spill, TEXTS)


def test_a_commit_is_on_disk_before_the_files_are_closed(every_commit_counts, tmp_path):
    with contextlib.closing(Spill(tmp_path / "spill")) as spill:
        for text in TEXTS[:7]:
            spill.add(text)
        spill.commit({})
        texts = list((tmp_path / "spill").glob("*.text"))
        assert sum(path.stat().st_size for path in texts) == len("".join(TEXTS[:7]).encode())


def test_small_commits_wait(tmp_path):
    with contextlib.closing(Spill(tmp_path / "spill")) as spill:
        spill.add("one")
        spill.commit({"sources": 1})
        assert not (tmp_path / "spill" / "journal.json").exists()
        assert spill.state == {}


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("kind", ["text", "index"])
@pytest.mark.parametrize("damage", ["shorter", "missing"])
def test_files_shorter_than_the_journal_says_are_refused(
    damage, kind, complete, every_commit_counts, tmp_path
):
    with contextlib.closing(Spill(tmp_path / "spill")) as spill:
        spill.add("one")
        spill.commit({}, complete=complete)
    (path,) = (p for p in (tmp_path / "spill").glob(f"*.{kind}") if p.stat().st_size)
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"damaged.*Received: '{re.escape(str(path))}'$"):
        Spill(tmp_path / "spill")


def test_a_document_that_has_changed_is_refused(tmp_path):
    spill = Spill(tmp_path / "spill")
    spill.add("one")
    spill.commit({}, complete=True)
    (path,) = (p for p in (tmp_path / "spill").glob("*.text") if p.stat().st_size)
    path.write_bytes(b"\0\0\0")
    entries, _ = spill.index(0, NUM_BUCKETS)
    with pytest.raises(ValueError, match="damaged"):
        list(spill.documents(entries))


def test_a_low_limit_of_open_files_is_raised(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        spill = Spill(tmp_path / "documents")
        spill.add("one document")
        spill.commit({}, complete=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    entries, _ = spill.index(0, NUM_BUCKETS)
    assert list(spill.documents(entries)) == ["one document"]
