"""Apache Beam, with any number of workers, makes the rows that one process makes."""

import json
import random
import subprocess

import commands
import pytest

from training.command import processes

pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install 'keras-tupe[beam]'")

OPTIONS = [
    *("--length", "23"),
    *("--vocabulary-size", "300"),
    *("--vocabulary-words", "2500"),  # a sample of the documents
    *("--valid", "0.2"),
    *("--block-bytes", "3000"),  # several blocks
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Seven files of documents, some twice: in one file, and in two files."""
    folder = tmp_path_factory.mktemp("corpus")
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefgh", k=chance.randint(1, 6))) for _ in range(200)]

    def document():
        sentences = (" ".join(chance.choices(words, k=chance.randint(2, 29))) for _ in range(7))
        return ". ".join(sentence.capitalize() for sentence in sentences) + "."

    documents = [document() for _ in range(101)]
    documents += documents[3:10] + documents[:1]
    for number in range(7):
        text = "\n\n".join(documents[number::7])
        (folder / f"{number}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def one_process(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("one") / "rows"
    commands.done("prepare", "--input", corpus, "--out", out, *OPTIONS)
    return out


def record(folder):
    return json.loads((folder / "preparation.json").read_text("utf-8"))


def on_beam(corpus, out, beam_options, options=OPTIONS):
    """Runs the command in another process, where Beam's warnings are no errors."""
    words = ("--input", corpus, "--out", out, *options, "--runner", "DirectRunner")
    return commands.run_anew("prepare", *words, f"--beam-options={beam_options}")


def assert_same_rows(ours, theirs):
    """The same files, but for the list of bad documents, and the same statistics."""
    ours, theirs = record(ours), record(theirs)
    ours["sha256"].pop("skipped.txt", None)
    for key in ("sha256", "splits", "corpus_hash", "duplicates", "vocabulary", "fingerprint"):
        assert ours[key] == theirs[key], key


@pytest.mark.slow
@pytest.mark.parametrize(
    "beam_options",
    [
        "--direct_running_mode=multi_processing --direct_num_workers=2",
        "--direct_running_mode=multi_threading --direct_num_workers=3",
        "",
    ],
)
def test_the_rows_are_those_of_one_process(corpus, one_process, tmp_path, beam_options):
    out = tmp_path / "rows"
    result = on_beam(corpus, out, beam_options)
    assert result.code == 0, result.err
    assert record(one_process)["duplicates"] == 8
    assert record(one_process)["splits"]["train"]["rows"] > 100
    assert_same_rows(out, one_process)
    commands.done("prepare", "--verify", out)
    assert [file.name for file in tmp_path.iterdir()] == ["rows"]


@pytest.mark.slow
def test_pairs_are_those_of_one_process(corpus, tmp_path):
    options = [*OPTIONS, "--pairs", "next"]
    commands.done("prepare", "--input", corpus, "--out", tmp_path / "one", *options)
    workers = "--direct_running_mode=multi_processing --direct_num_workers=2"
    result = on_beam(corpus, tmp_path / "many", workers, options)
    assert result.code == 0, result.err
    assert_same_rows(tmp_path / "many", tmp_path / "one")
    assert record(tmp_path / "many")["sha256"] == record(tmp_path / "one")["sha256"]


@pytest.mark.slow
def test_workers_import_no_other_training_of_the_current_folder(corpus, one_process, tmp_path):
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "__init__.py").write_text("open('imported', 'w').close()")
    out = tmp_path / "rows"
    words = ["--input", corpus, "--out", out, *OPTIONS, "--runner", "DirectRunner"]
    words += ["--beam-options=--direct_running_mode=multi_processing --direct_num_workers=2"]
    finished = subprocess.run(
        processes.words_of("training.prepare", *map(str, words)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert not (tmp_path / "imported").exists()
    assert_same_rows(out, one_process)


@pytest.fixture
def with_a_bad_file(corpus, tmp_path):
    (tmp_path / "corpus").mkdir()
    for file in corpus.iterdir():
        (tmp_path / "corpus" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "corpus" / "z.txt").write_bytes("na\u00efve".encode("latin-1"))
    return tmp_path / "corpus"


@pytest.mark.slow
def test_a_bad_document_is_told_in_one_line(with_a_bad_file, tmp_path):
    result = on_beam(with_a_bad_file, tmp_path / "rows", "")
    assert result.code == 1
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("prepare: The text is not UTF-8")
    assert "z.txt, line 1" in last
    assert "Traceback" not in result.err
    assert [file.name for file in tmp_path.iterdir()] == ["corpus"]


@pytest.mark.slow
def test_bad_documents_are_skipped_and_listed_if_asked(with_a_bad_file, one_process, tmp_path):
    out = tmp_path / "rows"
    result = on_beam(with_a_bad_file, out, "", [*OPTIONS, "--skip-bad"])
    assert result.code == 0, result.err
    assert record(out)["skipped"] == 1
    assert record(out)["splits"] == record(one_process)["splits"]
    assert record(out)["corpus_hash"] == record(one_process)["corpus_hash"]
    assert "z.txt, line 1" in (out / "skipped.txt").read_text("utf-8")
