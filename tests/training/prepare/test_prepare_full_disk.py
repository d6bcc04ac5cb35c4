"""A full disk ends in a sentence, wherever it strikes; with room, the same command goes on."""

import prepare_cases as cases
import pytest
from commands import files_of_at_most
from prepare_cases import documents, facts, failure, files, run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A file, and what an undisturbed run makes of it."""
    folder = tmp_path_factory.mktemp("corpus")
    source = cases.write_text(folder / "corpus.txt", documents(number=401))
    run(folder / "whole", source)
    return folder


# What grows beyond the limit first: settings, documents, their record, and a shard.
LIMITS = {
    311: None,
    2003: "settings.json documents",
    15_013: "settings.json documents 00.jsonl",
    19_001: "settings.json documents read.json vocabulary dataset",
}


@pytest.mark.parametrize(
    "limit", [pytest.param(x, marks=pytest.mark.slow if x == 2003 else ()) for x in LIMITS]
)
def test_a_full_disk_is_told_and_leaves_the_work(limit, corpus, tmp_path):
    out, source = tmp_path / "rows", corpus / "corpus.txt"
    with files_of_at_most(limit):
        message = failure(out, source)
    assert message.startswith("prepare: There is no room on the disk")
    assert message.endswith(f"remove {out}.unfinished. Received: File too large")
    there = {path.name for path in (tmp_path / "rows.unfinished").rglob("*")}
    assert there >= set((LIMITS[limit] or "").split())
    assert [path.name for path in tmp_path.iterdir()] == ["rows.unfinished"] * bool(LIMITS[limit])
    run(out, source)
    assert files(out) == files(corpus / "whole")
    assert facts(out) == facts(corpus / "whole")
