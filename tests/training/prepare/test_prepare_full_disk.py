"""A full disk ends in a sentence, wherever it strikes; with room, the same command goes on."""

import prepare_cases as cases
import pytest
from commands import files_of_at_most
from prepare_cases import documents, facts, failure, files, run

MORE = ["--block-bytes", 30_011, "--rows-per-shard", 401]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A file, and what an undisturbed run makes of it."""
    folder = tmp_path_factory.mktemp("corpus")
    source = cases.write_text(folder / "corpus.txt", documents(number=401))
    run(folder / "whole", source, more=MORE)
    return folder


# What grows beyond the limit first: settings, documents, journal, rows of a block, and a shard.
LIMITS = {
    311: ".unfinished-settings.json",
    2003: "settings.json documents",
    5009: "settings.json documents .unfinished-journal.json",
    8009: "settings.json documents journal.json vocabulary rows train-00000000.unfinished",
    40_009: "dataset",
    70_001: "dataset",
}


@pytest.mark.parametrize(
    "limit",
    [pytest.param(x, marks=pytest.mark.slow if x in (2003, 40_009) else ()) for x in LIMITS],
)
def test_a_full_disk_is_told_and_leaves_the_work(limit, corpus, tmp_path):
    out, source = tmp_path / "rows", corpus / "corpus.txt"
    with files_of_at_most(limit):
        message = failure(out, source, more=MORE)
    assert message.startswith("prepare: There is no room on the disk")
    assert message.endswith(f"remove {out}.unfinished. Received: File too large")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.unfinished"]
    there = {path.name for path in (tmp_path / "rows.unfinished").rglob("*")}
    assert there >= set(LIMITS[limit].split())
    run(out, source, more=MORE)
    assert files(out) == files(corpus / "whole")
    assert facts(out) == facts(corpus / "whole")
