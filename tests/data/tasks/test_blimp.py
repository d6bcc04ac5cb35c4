"""BLiMP's files, written here."""

import json

import pytest

from keras_tupe.data.tasks.blimp import read_blimp


def line(good="The cat sleeps.", bad="The cat sleep.", uid="agreement", **changes):
    row = {
        "sentence_good": good,
        "sentence_bad": bad,
        "field": "morphology",
        "linguistics_term": "subject_verb_agreement",
        "UID": uid,
        "pairID": "0",
    }
    return json.dumps({**row, **changes})


def write(path, *lines):
    path.write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    return path


def test_a_file_gives_the_pairs_of_one_paradigm(tmp_path):
    file = write(
        tmp_path / "a.jsonl", line(), line("Caf\u00e9s \u2028close.", "Caf\u00e9s closes.")
    )
    (paradigm,) = read_blimp(str(file))
    assert (paradigm.uid, paradigm.field) == ("agreement", "morphology")
    assert paradigm.linguistics_term == "subject_verb_agreement"
    assert paradigm.good == ["The cat sleeps.", "Caf\u00e9s \u2028close."]
    assert paradigm.bad == ["The cat sleep.", "Caf\u00e9s closes."]


def test_a_folder_gives_its_paradigms_in_the_order_of_names(tmp_path):
    for file, uid in (("1.jsonl", "wh_island"), ("2.jsonl", "causative"), ("3.jsonl", "drop")):
        write(tmp_path / file, line(uid=uid))
    (tmp_path / "README.md").write_text("not data")
    assert [paradigm.uid for paradigm in read_blimp(tmp_path)] == ["causative", "drop", "wh_island"]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("{'UID'", r"one JSON object.*, Expecting .* in column 2$"),
        ("", r"one JSON object.*, Expecting value in column 1$"),
        ("[1, 2]", r"without text under \['sentence_good', 'sentence_bad', 'UID'"),
        (line(good=""), r"without text under \['sentence_good'\]$"),
        (line(bad=" "), r"without text under \['sentence_bad'\]$"),
        (line(UID="../agreement"), r"letters, digits, _ and -.*, '../agreement'$"),
        (line(UID=5), r"without text under \['UID'\]$"),
        (line().replace("linguistics_term", "term"), r"without text under \['linguistics_term'\]$"),
        (line(uid="causative"), r"the same UID, .*_term: \('agreement'.*'causative'"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named_or_left_out(tmp_path, bad, sentence):
    file = write(tmp_path / "a.jsonl", line(), line("It is."), bad, line("It was."))
    with pytest.raises(ValueError, match=sentence) as error:
        read_blimp(file)
    assert "a.jsonl', line 3, " in str(error.value)
    skipped = []
    (paradigm,) = read_blimp(tmp_path, skipped=skipped)
    assert paradigm.good == ["The cat sleeps.", "It is.", "It was."]
    assert skipped == [str(error.value)]


def test_a_file_of_broken_lines_only_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", "{}", "{}")
    with pytest.raises(ValueError, match=r"at least one good line.*a\.jsonl', where all"):
        read_blimp(tmp_path, skipped=[])


def test_a_paradigm_in_two_files_is_refused(tmp_path):
    write(tmp_path / "a.jsonl", line())
    write(tmp_path / "b.jsonl", line())
    with pytest.raises(
        ValueError, match=r"in one file.*UID 'agreement' in '.*a\.jsonl' and '.*b\."
    ):
        read_blimp(tmp_path)


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"files named \.jsonl\. Received: path='"):
        read_blimp(tmp_path)
    with pytest.raises(ValueError, match=r"a file of BLiMP.*no file\. Received: file='.*nowhere"):
        read_blimp(tmp_path / "nowhere.jsonl")


def test_files_that_are_empty_or_not_utf8_are_refused(tmp_path):
    write(tmp_path / "a.jsonl")
    with pytest.raises(ValueError, match=r"is empty\. Received: file='.*a\.jsonl'$"):
        read_blimp(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(line().encode() + b"\n\xff\n")
    with pytest.raises(ValueError, match=r"in UTF-8.*a\.jsonl', line 2, first bad byte"):
        read_blimp(tmp_path)
