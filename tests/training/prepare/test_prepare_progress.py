"""What moves while rows are prepared: a bar for each stage, or a line per minute in a log."""

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

from training.prepare import stages as progress

STAGES = ["read and clean", "drop duplicates", "vocabulary", "tokenize and pack"]


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


def test_a_terminal_shows_a_bar_for_each_stage_and_then_a_table(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_MOMENT", 0)
    with pseudo_terminal() as (terminal, written):
        told = prepare(tmp_path / "rows", corpus, terminal)
    shown = b"".join(written).decode("utf-8", errors="replace")
    for stage in STAGES:
        assert re.search(rf"\r{stage}: 100%\|[^|]*\| \S+/\S+", shown), stage
    assert re.search(r"^\| all +\| +[\d.]+ +\| 100%", told, re.MULTILINE)


def test_a_log_has_no_bar_of_a_stage_that_takes_less_than_a_minute(corpus, tmp_path, monkeypatch):
    log = io.StringIO()
    prepare(tmp_path / "rows", corpus, log)
    assert log.getvalue() == ""
    monkeypatch.setattr(progress, "_MINUTE", 0)
    prepare(tmp_path / "again", corpus, log)
    for stage in STAGES:
        assert f"{stage}: 100%" in log.getvalue()
