"""What is wrong with a file is told with its place, and reading goes on."""

import pytest
from compressed_cases import COMPRESS

from keras_tupe.data import find_sources, read_source


def places(path, **options):
    """`(line number, problem or text)` of each document."""
    (source,) = find_sources([str(path)])
    found = list(read_source(source, **options))
    assert all(document.place.startswith(f"{path}, line ") for document in found)
    return [(int(d.place.rsplit(" ", 1)[1]), d.problem or d.text.strip()) for d in found]


BAD_LINES = {
    b'{"text": "abc"': "The line is not JSON (",
    b'"abc"': "The line holds no JSON object but a str.",
    b'["abc"]': "The line holds no JSON object but a list.",
    b"7": "The line holds no JSON object but a int.",
    b"7" * 5000: "The line is not JSON (",
    b"[" * 100_000: "The line is not JSON (",
    b'{"body": "abc", "a": 1}': "The field 'text' is missing (--text-field names it). The fields "
    "are ['a', 'body'].",
    b'{"text": 7}': "The field 'text' must hold text, and holds a int.",
    b'{"text": null}': "The field 'text' must hold text, and holds a NoneType.",
    b'{"text": ["abc"]}': "The field 'text' must hold text, and holds a list.",
    b'{"text": "a\\u0000b"}': "There are NUL characters in the text.",
    b'{"text": "a\0b"}': "There are NUL bytes: this is binary data or UTF-16. Convert it to UTF-8.",
    b'{"text": "a\\ud800b"}': "The text has half of a surrogate pair, which is no character.",
    b'{"text": "a\xffb"}': "The text is not UTF-8 (byte 0xff after 11 bytes of the document).",
    b'{"text": "' + b"a" * 200_001 + b'"}': "The document has more than 150,000 bytes.",
}


@pytest.mark.parametrize("name", ["corpus.jsonl", "wiki_00"])
@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: repr(line[:20]))
def test_a_bad_json_line_is_named_and_the_next_is_read(line, name, tmp_path):
    if name == "wiki_00" and not line.startswith(b"{"):
        line = b'{"text": "one"]'
    path = tmp_path / name
    good = [b'{"text": "one", "x": "\\ud83d\\ude00"}', b'{"text": "two"}']
    path.write_bytes(good[0] + b"\n\n" + line + b"\n" + good[1])
    first, (number, problem), last = places(path, max_document_bytes=150_000)
    assert (first, last) == ((1, "one"), (4, "two"))
    assert number == 3
    assert problem.startswith(BAD_LINES.get(line, "The line is not JSON ("))


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"caf\xe9", "The text is not UTF-8 (byte 0xe9 after 3 bytes of the document)"),
        (b"abc\n\xf0\x9f\x98", "The text is not UTF-8 (byte 0xf0 after 4 bytes of the document)"),
        (b"\xed\xa0\x80", "The text is not UTF-8 (byte 0xed after 0 bytes"),
        (b"a\0b", "There are NUL bytes"),
        ("words".encode("utf-16"), "There are NUL bytes"),
        (b"a" * 98, "The document has more than 97 bytes"),
        (b"line\n" * 20, "The document has more than 97 bytes"),
        (b"a" * 997, "The document has more than 97 bytes"),
    ],
)
@pytest.mark.parametrize("format", ["text", "wikiextractor"])
def test_a_bad_document_is_named_and_the_next_is_read(bad, problem, format, tmp_path):
    make, name, lines = {
        "text": (lambda d: b"\n\n".join(d), "corpus.txt", (1, 3)),
        "wikiextractor": (
            lambda d: b"".join(b'<doc id="7">\n%s\n</doc>\n' % one for one in d),
            "wiki_00",
            (1, 4),
        ),
    }[format]
    path = tmp_path / name
    path.write_bytes(make([b"one", bad, b"two"]))
    first, (number, found), last = places(path, max_document_bytes=97)
    assert first == (lines[0], "one")
    assert number == lines[1]
    assert found.startswith(problem)
    assert last[1] == "two"


@pytest.mark.parametrize("end", [b"", b"\n", b"\n\nnext"])
def test_a_document_may_be_as_large_as_the_limit(end, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"a" * 96 + end)  # the line end counts
    assert places(path, max_document_bytes=97)[0] == (1, "a" * 96)
    path.write_bytes(b"a" * 98 + end)
    assert places(path, max_document_bytes=97)[0][1].startswith(
        "The document has more than 97 bytes"
    )


def test_wikiextractor_articles_must_open_and_close(tmp_path):
    path = tmp_path / "wiki_00"
    article = b'<doc id="1" url="" title="t">\nText.\n</doc>\n'
    path.write_bytes(article + b"lost\n" + article + b'<doc id="2" title="u">\nCut')
    problems = places(path)
    assert [line for line, _ in problems] == [1, 4, 5, 8]
    assert problems[1][1] == 'The line is outside of <doc id="..." ...> and </doc>.'
    assert problems[3][1] == "The article has no </doc>: is the file cut off?"


def test_two_wikiextractor_articles_never_become_one(tmp_path):
    path = tmp_path / "wiki_00"
    article = b'<doc id="1" url="" title="t">\nText.\n</doc>\n'
    path.write_bytes(article.removesuffix(b"</doc>\n") + article)
    (line, problem), whole = places(path)
    assert (line, problem) == (1, "The article has no </doc>: is the file cut off?")
    assert whole == (3, "Text.")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["corpus.txt", "corpus.jsonl", "wiki_00", "corpus.txt.gz"])
def test_a_file_without_text_is_a_problem(content, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(COMPRESS.get(path.suffix, bytes)(content))
    (source,) = find_sources([str(path)])
    (document,) = read_source(source)
    message = f"The file is empty, or holds nothing but white space. Received: {path}"
    assert document.message == message
