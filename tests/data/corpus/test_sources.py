"""Files, folders, globs and TFDS data sets: what is found, and the documents that are read."""

import json
import os

import pytest
from compressed_cases import COMPRESS

from keras_tupe.data import Source, find_sources, read_source

TEXTS = ["First one.\nIts second line.", "Zwei \u00e4\u00f6\u00fc.", "three"]


def texts(source, **options):
    documents = list(read_source(source, **options))
    assert not any(document.problem for document in documents), documents
    return [document.text.rstrip("\n") for document in documents]


def read(path, format="auto", **options):
    (source,) = find_sources([str(path)], format)
    return texts(source, **options)


def places(path, **options):
    """`(line number, problem or text)` of each document."""
    (source,) = find_sources([str(path)])
    found = list(read_source(source, **options))
    assert all(document.place.startswith(f"{path}, line ") for document in found)
    return [(int(d.place.rsplit(" ", 1)[1]), d.problem or d.text.strip()) for d in found]


def plain(documents):
    return "\n\n".join(documents).encode()


def jsonl(documents, field="text"):
    return "".join(json.dumps({"url": "u", field: d}) + "\n" for d in documents).encode()


def tags(documents):
    form = '<doc id="{}" url="https://x/?a=1&b" title="A &quot;b&quot;">\n{}\n\n</doc>\n'
    return "".join(form.format(i, d) for i, d in enumerate(documents)).encode()


CONTENT = {
    "corpus.txt": plain,
    "corpus.md": plain,
    "corpus.rst": plain,
    "corpus.jsonl": jsonl,
    "corpus.ndjson": jsonl,
    "corpus.json": jsonl,
    "wiki_07": tags,
    "wiki_123": jsonl,
}


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
@pytest.mark.parametrize("name", CONTENT)
def test_every_kind_of_file_is_known_by_its_name(name, suffix, tmp_path):
    path = tmp_path / f"{name}{suffix}"
    path.write_bytes(COMPRESS.get(suffix, bytes)(CONTENT[name](TEXTS)))
    assert read(path) == TEXTS
    assert [d.name for d in find_sources([str(tmp_path)])] == [str(path)]
    upper = path.rename(tmp_path / path.name.upper())
    assert read(upper) == TEXTS


@pytest.mark.parametrize("make", [plain, jsonl, tags])
@pytest.mark.parametrize("opening", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_byte_order_marks_and_windows_line_ends_are_no_text(make, opening, line_end, tmp_path):
    format = {plain: "text", jsonl: "jsonl", tags: "wikiextractor"}[make]
    path = tmp_path / "odd name.data"
    path.write_bytes(opening + make(TEXTS).replace(b"\n", line_end))
    found = read(path, format)
    assert [text.replace("\r\n", "\n").rstrip() for text in found] == TEXTS


def test_other_names_are_plain_text_unless_the_format_is_given(tmp_path):
    path = tmp_path / "corpus.data"
    path.write_bytes(plain(TEXTS))
    assert read(path) == TEXTS
    path.write_bytes(jsonl(TEXTS, "body"))
    assert read(path, "jsonl", text_field="body") == TEXTS


def test_blank_lines_separate_documents_however_many_and_wherever(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"\n \n\t\r\n" + plain(TEXTS).replace(b"\n\n", b"\n \t\n\n\r\n") + b"\n\n\n")
    assert read(path) == TEXTS
    assert [line for line, _ in places(path)] == [4, 9, 13]


def test_places_name_the_first_line_of_a_document(tmp_path):
    path = tmp_path / "wiki_00"
    path.write_bytes(b"\n" + tags(TEXTS))
    assert [line for line, _ in places(path)] == [2, 7, 11]
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"\n" + jsonl(TEXTS).replace(b"\n", b"\n\n"))
    assert [line for line, _ in places(path)] == [2, 4, 6]


@pytest.fixture
def tree(tmp_path):
    """A folder with files of all kinds at several depths, and others that are no text."""
    for name in ("b/AA/wiki_00", "b/AA/wiki_01.bz2", "a.txt", "b/z.jsonl.gz", ".c/n.md.zst"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name in ("readme", "b/picture.png", "b/table.csv.gz", "wiki_x", "b/AA/wiki_00.part", ".gz"):
        (tmp_path / "tree" / name).touch()
    (tmp_path / "tree/folder.txt").mkdir()
    return tmp_path / "tree"


def names(tree, sources):
    return [os.path.relpath(source.name, tree) for source in sources]


def test_folders_are_searched_at_any_depth_for_known_names(tree):
    sources = find_sources([str(tree)])
    expected = [".c/n.md.zst", "a.txt", "b/AA/wiki_00", "b/AA/wiki_01.bz2", "b/z.jsonl.gz"]
    assert names(tree, sources) == expected
    kinds = ["text", "text", "wikiextractor", "wikiextractor", "jsonl"]
    assert [source.format for source in sources] == kinds
    assert len(find_sources([str(tree)], "text")) == 11


def test_globs_match_files_of_any_name(tree):
    assert names(tree, find_sources([f"{tree}/b/*"])) == [
        "b/picture.png",
        "b/table.csv.gz",
        "b/z.jsonl.gz",
    ]
    found = names(tree, find_sources([f"{tree}/**/wiki_*"]))
    assert found == ["b/AA/wiki_00", "b/AA/wiki_00.part", "b/AA/wiki_01.bz2", "wiki_x"]
    special = tree / "[a]*.txt"
    special.touch()
    assert names(tree, find_sources([str(special)])) == ["[a]*.txt"]


def test_a_file_that_is_named_twice_is_read_once(tree, monkeypatch):
    (tree / "link.txt").symlink_to(tree / "a.txt")
    monkeypatch.chdir(tree)
    twice = ["a.txt", "./a.txt", str(tree / "a.txt"), f"{tree}/b/../a.*", str(tree), "link.txt"]
    paths = [os.path.realpath(source.name) for source in find_sources(twice)]
    assert len(paths) == len(set(paths)) == 5


def test_the_order_of_the_inputs_does_not_matter(tree):
    inputs = [str(tree / "b"), str(tree / "a.txt"), "tfds:b", "tfds:a:test"]
    assert find_sources(inputs) == find_sources(inputs[::-1])


@pytest.mark.parametrize(
    "name", ["missing", "missing/*.txt", "empty", "empty/*", "tree/b/AA/*.png"]
)
def test_an_input_that_names_nothing_is_refused(name, tree, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ValueError, match=r"(An input must be|The folder must hold).*Received: input="
    ):
        find_sources([str(tree / "a.txt"), str(tmp_path / name)])


def test_no_input_and_an_unknown_format_are_refused(tree):
    with pytest.raises(ValueError, match=r"at least one input.*Received: inputs=\[\]"):
        find_sources([])
    with pytest.raises(ValueError, match="`format` must be one of .*Received: format='csv'"):
        find_sources([str(tree)], "csv")


def test_sources_change_with_their_files(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("one")
    before = find_sources([str(path)])
    os.utime(path, ns=(7, 7))
    assert find_sources([str(path)]) == [Source(str(path), "text", 3, 7)]
    assert find_sources([str(path)]) != before
