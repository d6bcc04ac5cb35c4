"""What moves while rows are prepared: one bar in a terminal, a line per minute in a log."""

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import termios
import threading

import commands
import prepare_cases as cases
import pytest

from training.command import stages
from training.prepare import plan

STAGES = [plan.READ, plan.DEDUPLICATE, plan.VOCABULARY, plan.PACK, plan.WRITE]


@contextlib.contextmanager
def pseudo_terminal():
    """Yields a terminal of 100 columns to write to, and a list that gets what was written."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    written = []

    def read():
        with contextlib.suppress(OSError):  # the other end was closed
            while content := os.read(ours, 4096):
                written.append(content)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with open(theirs, "w", encoding="utf-8") as terminal:
        yield terminal, written
    reader.join(10)
    os.close(ours)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return cases.write_text(tmp_path_factory.mktemp("corpus") / "corpus.txt", cases.documents())


def prepare(out, corpus, terminal):
    with contextlib.redirect_stderr(terminal), contextlib.redirect_stdout(io.StringIO()) as told:
        commands.main_of("prepare")(cases.words(out, corpus))
    return told.getvalue()


def test_a_terminal_shows_one_bar_for_all_stages(corpus, tmp_path):
    with pseudo_terminal() as (terminal, written):
        prepare(tmp_path / "rows", corpus, terminal)
    shown = b"".join(written).decode("utf-8", errors="replace")
    bars = re.findall(r"\r *(\d+)%\|[^|]*\|(.*?)(?=\r|$)", shown, re.DOTALL)
    shares = [int(share) for share, _ in bars]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert "in all" in bars[-1][1]
    for stage in STAGES:
        assert any(re.search(rf"\d+:\d+ left: {stage}", text) for _, text in bars), stage
    assert shown.count("\n") == 1, "one line, which moves"


def test_a_log_has_lines_with_stage_share_and_time_left(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(plan.Plan, "__init__", _with_lines_at_once)
    log = io.StringIO()
    prepare(tmp_path / "rows", corpus, log)
    lines = log.getvalue().splitlines()
    assert all(re.match(r"prepare: \d+% done, \d+:\d+ left: \w+", line) for line in lines)
    for stage in STAGES:
        assert any(f"left: {stage}" in line for line in lines), stage


def _with_lines_at_once(self, **kwargs):
    stages.Stages.__init__(self, "prepare", line_seconds=0.0, tick_seconds=None, **kwargs)
    self.expect(plan.START, 1.0)
    self.begin(plan.START)


def test_a_block_tells_how_far_it_is(monkeypatch):
    from keras_tupe.tokenizers import WordPiece
    from training.prepare import blocks

    monkeypatch.setattr(blocks, "_SENTENCES_PER_CALL", 3)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
    tokenizer = WordPiece(pieces)
    texts = ["A b. B a. A.", "", "B b b. A a b. B.", "A."]
    shares = []
    rows, statistics, _ = blocks.pack_block(texts, tokenizer, 8, advance=shares.append)
    assert shares == [pytest.approx(3 / 7), pytest.approx(6 / 7)]
    monkeypatch.undo()
    whole, facts, _ = blocks.pack_block(texts, tokenizer, 8)
    assert (rows == whole).all()
    assert statistics == facts


def test_on_beam_two_pipelines_take_the_place_of_the_stages():
    from training.prepare.settings import Settings

    with plan.Plan(tick_seconds=None, stream=io.StringIO()) as found:
        found.expect_pipelines([], Settings(vocabulary="vocabulary.txt"))
        for stage in (plan.FIRST, plan.VOCABULARY, plan.SECOND, plan.WRITE):
            found.begin(stage)
        with pytest.raises(KeyError):
            found.begin(plan.PACK)
