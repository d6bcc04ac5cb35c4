"""The gallery, run as a user runs it."""

import json
import types

import matplotlib.image
import numpy as np
import pytest
from quickstart_cases import write_corpus

from docs.generate.gallery import (
    Entry,
    Heads,
    Settings,
    draw_entry,
    facts_of,
    held_out_rows,
    main,
    others_of,
    page,
)
from keras_tupe import data


def test_rows_that_fill_the_last_batch_up_are_no_texts():
    masking = data.Masking(vocabulary_size=30, mask_id=4, pad_id=0, special_ids=(1, 2, 3))
    ids = np.arange(5, 29).reshape(3, 8)
    rows = data.Rows(ids, masking, batch_size=2, seed=1)
    found = held_out_rows(types.SimpleNamespace(held_out=rows))
    assert found["token_ids"].shape == found["padding_mask"].shape == (3, 8)
    assert found["padding_mask"].all()


def heads_of_a_kind(kind, count=4):
    """Returns `Heads` with nothing equal in them."""
    matrices = np.random.default_rng(0).random((count, 9, 9))
    return Heads(kind, matrices, ["broadly"] * count)


def colored(image):
    """Returns which pixels have a color, neither white nor gray nor black."""
    return np.ptp(image, axis=-1) > 0.1


def test_the_picture_shows_every_head_before_and_after(tmp_path):
    sizes = {}
    for count in (4, 5):
        entry = Entry(
            "alibi", heads_of_a_kind("scores", count), heads_of_a_kind("logits", count), 4.2
        )
        draw_entry(tmp_path / "heads.png", entry, 600)
        image = matplotlib.image.imread(tmp_path / "heads.png")[..., :3]
        sizes[count] = image.shape
        lines = image.shape[0] // 2
        for half, is_of_logits in ((image[:lines], False), (image[lines:], True)):
            panels = np.array_split(colored(half), 4, axis=1)
            assert min(panel.mean() for panel in panels) > 0.3, "a head is missing"
            red = (half[..., 0] > half[..., 1] + 0.3) & (half[..., 0] > half[..., 2] + 0.3)
            assert (red.mean() > 0.02) == is_of_logits
    assert 700 < sizes[4][1] == sizes[5][1] < 900
    assert sizes[4][0] < sizes[5][0]
    assert (tmp_path / "heads.png").stat().st_size < 60_000


def test_the_page_links_every_picture_and_says_what_was_found():
    entry = Entry("alibi", heads_of_a_kind("scores"), heads_of_a_kind("logits"), 4.256)
    data = types.SimpleNamespace(facts={"hash": "abc"})
    facts = facts_of([entry], Settings(steps=7), data, {})
    assert facts["tokens"] == 7 * 32 * 32
    assert facts["methods"]["alibi"]["after"] == {"kind": "logits", "patterns": ["broadly"] * 4}
    text = page(json.loads(json.dumps(facts)))
    assert "| [`alibi`](heads/alibi.png) | a fixed linear penalty" in text
    assert "| 4.26 " in text
    assert "7 steps (7,168 tokens)" in text


def test_methods_that_were_trained_alike_stay(tmp_path):
    out = tmp_path / "gallery"
    out.mkdir()
    data = types.SimpleNamespace(facts={"hash": "abc"})

    def settings(names, **values):
        return Settings(positions=names, out=str(out), **values)

    entries = {
        name: Entry(name, heads_of_a_kind("scores"), heads_of_a_kind("logits"), loss)
        for name, loss in (("alibi", 1.0), ("t5", 2.0))
    }
    assert others_of(settings("alibi"), data) == {}
    first = facts_of(entries.values(), settings("alibi,t5"), data, {})
    (out / "gallery.json").write_text(json.dumps(first), encoding="utf-8")
    others = others_of(settings("kerple,t5"), data)
    assert others == {"alibi": first["methods"]["alibi"]}
    both = facts_of([entries["t5"]], settings("t5"), data, others)
    assert both == first
    assert others_of(settings("all", steps=1), data) == {}
    assert others_of(settings("t5,alibi", steps=1), data) == {}
    with pytest.raises(ValueError, match=r"another --out.*'steps': 600.*'steps': 1\b"):
        others_of(settings("kerple", steps=1), data)
    other_data = types.SimpleNamespace(facts={"hash": "def"})
    with pytest.raises(ValueError, match="'corpus': 'abc'"):
        others_of(settings("kerple"), other_data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--positions", "tupe_x"], "Did you mean 'tupe_"),
        (["--steps", "0"], "integer >= 1. Received: 0"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(arguments, message, tmp_path, capsys):
    out = tmp_path / "gallery"
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--out", str(out)])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_the_gallery_trains_a_method_and_writes_pictures_and_a_page(tmp_path, capsys, monkeypatch):
    write_corpus(tmp_path / "corpus.txt")
    documents = data.read_documents(tmp_path / "corpus.txt")
    monkeypatch.setattr(data, "embedded_documents", lambda progress: documents)
    out = tmp_path / "gallery"
    main(["--positions", "alibi", "--steps", "1", "--out", str(out)])
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "gallery.json", "heads"]
    text = (out / "README.md").read_text(encoding="utf-8")
    assert (out / "heads" / "alibi.png").is_file()
    assert "| [`alibi`](heads/alibi.png) | a fixed linear penalty" in text
    assert text.splitlines()[-1] in capsys.readouterr().out
