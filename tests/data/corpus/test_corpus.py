"""Reading text files, and splitting documents by their hash."""

import numpy as np
import pytest

from keras_tupe.data.corpus.documents import (
    corpus_hash,
    count_words,
    read_documents,
    split_documents,
)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def test_blank_lines_separate_documents(tmp_path):
    content = "\ufeff\n\nFirst line\nsecond line\n\n \t\n\nNext \u00e9.\r\n\r\nThird.\n"
    file = write(tmp_path / "corpus", content)
    assert read_documents(file) == ["First line\nsecond line", "Next \u00e9.", "Third."]


def test_a_folder_is_read_in_the_order_of_names_at_any_depth(tmp_path):
    for name, text in {
        "b.txt": "two",
        "a.md": "one\n\nmore",
        "c/d.RST": "three",
        "a.py": "code",
    }.items():
        write(tmp_path / name, text)
    (tmp_path / "z.txt").mkdir()
    assert read_documents(str(tmp_path)) == ["one", "more", "two", "three"]


def test_a_missing_corpus_is_named(tmp_path):
    path = tmp_path / "nowhere.txt"
    with pytest.raises(ValueError, match=r"nothing under this name\. Received: input='.*nowhere"):
        read_documents(path)


def test_a_folder_without_text_files_is_named(tmp_path):
    write(tmp_path / "a.py", "x = 1")
    with pytest.raises(ValueError, match=r"files named \.txt, \.md, \.rst.* Received: input='"):
        read_documents(tmp_path)


@pytest.mark.parametrize("content", ["", " \n\n\t\n"])
def test_an_empty_corpus_is_refused(tmp_path, content):
    file = write(tmp_path / "empty.txt", content)
    with pytest.raises(
        ValueError, match=r"holds nothing but white space\. Received: .*empty\.txt$"
    ):
        read_documents(file)


def test_the_first_byte_that_is_not_utf8_is_named(tmp_path):
    write(tmp_path / "good.txt", "fine")
    write(tmp_path / "latin.txt", "caf\u00e9".encode("latin-1"))
    with pytest.raises(
        ValueError, match=r"not UTF-8 \(byte 0xe9 after 3 bytes.*Received: .*latin\.txt, line 1$"
    ):
        read_documents(tmp_path)


def test_the_split_depends_on_each_text_alone():
    documents = [f"Document number {i}." for i in range(500)]
    train, held_out = split_documents(documents, 0.3)
    again_train, again_held_out = split_documents(documents[::-1] + documents[:50], 0.3)
    assert (again_train, again_held_out) == (train, held_out)
    fewer_train, fewer_held_out = split_documents(documents[:250], 0.3)
    assert set(fewer_train) <= set(train)
    assert set(fewer_held_out) <= set(held_out)
    assert sorted(train + held_out) == sorted(documents)


def test_the_share_held_out_is_as_asked():
    documents = [str(i) for i in range(10_000)]
    for share in (0.1, 0.5):
        held_out = len(split_documents(documents, share)[1])
        assert abs(held_out - 10_000 * share) < 5 * np.sqrt(10_000 * share * (1 - share))
    assert split_documents(documents, 0.0)[1] == []
    assert split_documents(documents, 1.0)[0] == []


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(ValueError, match=f"share from 0 to 1.*Received: held_out={share}"):
        split_documents(["text"], share)


def test_the_hash_names_the_texts_and_not_their_order():
    assert corpus_hash(["a", "b"]) == corpus_hash(["b", "a"]) == "08bb6928ca551715"
    assert corpus_hash(["a", "b"]) != corpus_hash(["ab"]) != corpus_hash(["a", "b", "b"])


def test_words_are_counted():
    assert count_words(["one two", "three\nfour  five", ""]) == 5
