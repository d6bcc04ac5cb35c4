"""Text files to documents, and where each goes: a pure function of its text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_tupe.data import corpus_hash, read_documents, split_documents
from keras_tupe.data.corpus.documents import document_digest, is_held_out, multiset_hash
from training.prepare.documents import block_number, choose_num_blocks, is_sampled

NUMBER = 20_011
DIGESTS = [document_digest(f"document {number}") for number in range(NUMBER)]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


# === Reading ===


def test_blank_lines_separate_documents(tmp_path):
    content = "\ufeff\n\nFirst line\nsecond line\n\n \t\n\nNext \u00e9.\r\n\r\nThird.\n"
    file = write(tmp_path / "corpus", content)
    assert read_documents(file) == ["First line\nsecond line", "Next \u00e9.", "Third."]


def test_a_folder_is_read_in_the_order_of_names_at_any_depth(tmp_path):
    files = {"b.txt": "two", "a.md": "one\n\nmore", "c/d.RST": "three", "a.py": "code"}
    for name, text in files.items():
        write(tmp_path / name, text)
    (tmp_path / "z.txt").mkdir()
    assert read_documents(str(tmp_path)) == ["one", "more", "two", "three"]


def test_what_cannot_be_read_is_named(tmp_path):
    write(tmp_path / "good.txt", "fine")
    write(tmp_path / "latin.txt", b"caf\xe9")
    with pytest.raises(ValueError, match=r"not UTF-8 \(.*Received: .*latin\.txt, line 1$"):
        read_documents(tmp_path)
    unseen = write(tmp_path / "unseen.txt", "\u200b")
    with pytest.raises(ValueError, match=r"must have text.*Received: path='.*unseen\.txt'"):
        read_documents(unseen)


# === Where documents go ===


def digest_with(position, value, size):
    return bytes(position) + value.to_bytes(size, "big") + bytes(32 - position - size)


def within(count, share, number=NUMBER):
    """Within six standard deviations of a binomial count."""
    return abs(count - share * number) < 6 * math.sqrt(share * (1 - share) * number)


def test_the_split_depends_on_each_text_alone():
    documents = [f"document {number}" for number in range(500)]
    train, held_out = split_documents(documents, 0.3)
    again = split_documents(documents[::-1] + documents[:50], 0.3)
    assert again == (train, held_out)
    assert set(held_out) == {text for text in documents if is_held_out(document_digest(text), 0.3)}
    assert sorted(train + held_out) == sorted(documents)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_an_impossible_share_is_refused(share):
    with pytest.raises(ValueError, match=f"at least 0 and at most 1.*Received: held_out={share}"):
        split_documents(["text"], share)


@pytest.mark.parametrize("choose", [is_held_out, is_sampled])
def test_the_expected_share_is_chosen_and_a_larger_share_only_adds(choose):
    before = set()
    for share in (0.01, 0.23, 0.5, 0.97):
        chosen = {digest for digest in DIGESTS if choose(digest, share)}
        assert within(len(chosen), share)
        assert before < chosen
        before = chosen
    assert not any(choose(digest, 0) for digest in DIGESTS)
    assert all(choose(digest, 1) for digest in DIGESTS)


@pytest.mark.parametrize(("choose", "position"), [(is_held_out, 0), (is_sampled, 16)])
def test_shares_are_read_from_their_own_bytes(choose, position):
    below, at = (digest_with(position, value, 8) for value in (2**62 - 1024, 2**62))
    assert choose(below, 0.25)
    assert not choose(at, 0.25)
    for other in {0, 8, 16, 24} - {position}:
        assert choose(digest_with(other, 2**64 - 1, 8), 1e-9)


@pytest.mark.parametrize("bits", range(33))
def test_blocks_are_numbered_by_the_leading_bits_of_their_own_bytes(bits):
    for value in (0, 1, 2**31 - 1, 2**31, 0x9E3779B9, 2**32 - 1):
        assert block_number(digest_with(8, value, 4), 2**bits) == value * 2**bits // 2**32
    assert block_number(b"\xff" * 8 + bytes(4) + b"\xff" * 20, 2**bits) == 0


@given(st.integers(0, 2**45), st.integers(1, 2**30))
def test_the_number_of_blocks_is_the_smallest_power_of_two_that_suffices(num_bytes, block_bytes):
    number = choose_num_blocks(num_bytes, block_bytes)
    assert number & (number - 1) == 0
    assert number * block_bytes >= num_bytes
    assert number == 1 or number // 2 * block_bytes < num_bytes


@given(st.lists(st.binary(min_size=32, max_size=32), max_size=7), st.randoms())
def test_the_hash_of_a_multiset_adds_up_whatever_the_order(digests, random):
    whole = multiset_hash(digests)
    shuffled = random.sample(digests, len(digests))
    assert multiset_hash(shuffled) == whole
    half = len(digests) // 2
    assert (multiset_hash(shuffled[:half]) + multiset_hash(shuffled[half:])) % 2**256 == whole
    assert 0 <= whole < 2**256


def test_the_hash_of_a_multiset_counts_members():
    first, second = DIGESTS[:2]
    names = [multiset_hash(m) for m in ([], [first], [second], [first] * 2, [first, second])]
    assert len(set(names)) == 5
    assert names[1] == int.from_bytes(first, "big")
    assert corpus_hash(["a", "b"]) == corpus_hash(["b", "a"]) == "08bb6928ca551715"
