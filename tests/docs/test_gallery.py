"""The gallery, run as a user runs it."""

import json
import types

import numpy as np
import pytest
from quickstart_cases import write_corpus

from docs.generate.gallery import (
    Entry,
    Heads,
    Settings,
    facts_of,
    main,
    others_of,
)
from keras_tupe import data


def heads_of_a_kind(kind, count=4):
    """Returns `Heads` with nothing equal in them."""
    matrices = np.random.default_rng(0).random((count, 9, 9))
    return Heads(kind, matrices, ["broadly"] * count)


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
