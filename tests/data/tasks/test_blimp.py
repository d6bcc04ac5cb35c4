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
        ("{'UID'", r"a JSON object in each line.*, Expecting property name .*$"),
        ("", r"a JSON object in each line.*, Expecting value$"),
        ("[1, 2]", r"an object at this place.*, \$: \[1, 2\]$"),
        (line(good=""), r"text at this place.*, \$\.sentence_good: ''$"),
        (line(bad=" "), r"text at this place.*, \$\.sentence_bad: ' '$"),
        (line(UID="../agreement"), r"letters, digits, _ and -.*, '../agreement'$"),
        (line(UID=5), r"text at this place.*, \$\.UID: 5$"),
        (line().replace("linguistics_term", "term"), r"must be 'linguistics_term' at.*: keys"),
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


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a": b"{}\n{}\n"}, r"at least one good entry.*a\.jsonl', which has"),
        (
            {"a": line().encode(), "b": line().encode()},
            r"in one file.*UID 'agreement' in '.*a\.jsonl' and '.*b\.",
        ),
        ({}, r"files named \.jsonl\. Received: path='"),
        ({"a": b""}, r"is empty\. Received: file='.*a\.jsonl'$"),
        ({"a": line().encode() + b"\n\xff\n"}, r"in UTF-8.*a\.jsonl', line 2, first bad byte"),
    ],
)
def test_folders_that_cannot_be_read_are_refused(tmp_path, files, sentence):
    for name, content in files.items():
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        read_blimp(tmp_path, skipped=[] if "good entry" in sentence else None)
    with pytest.raises(ValueError, match=r"There is no file .*BLiMP.* Received: file='.*nowhere"):
        read_blimp(tmp_path / "nowhere.jsonl")
