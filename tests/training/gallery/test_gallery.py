"""The gallery, run as a user runs it."""

import types

import commands
import matplotlib.image
import numpy as np
import pytest
from quickstart_cases import write_corpus

from keras_tupe import data
from training.gallery.picture import Entry, Heads, draw_gallery
from training.gallery.work import held_out_rows


@pytest.mark.slow
def test_the_gallery_trains_a_method_and_writes_pictures_and_a_page(tmp_path):
    corpus = tmp_path / "corpus.txt"
    write_corpus(corpus)
    out = tmp_path / "gallery"
    words = ("--positions", "alibi", "--steps", 1, "--corpus", corpus, "--out", out)
    ended = commands.run_anew("gallery", *words)
    assert ended.code == 0, ended.err[-2000:]
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "heads_1.png"]
    page = (out / "README.md").read_text(encoding="utf-8")
    assert "(heads_1.png)" in page
    assert "| `alibi` | a fixed linear penalty" in page
    assert page.splitlines()[-1] in ended.out


def test_rows_that_fill_the_last_batch_up_are_no_texts():
    masking = data.Masking(vocabulary_size=30, mask_id=4, pad_id=0, special_ids=(1, 2, 3))
    ids = np.arange(5, 29).reshape(3, 8)
    rows = data.Rows(ids, masking, batch_size=2, seed=1)
    found = held_out_rows(types.SimpleNamespace(held_out=rows))
    assert found["token_ids"].shape == found["padding_mask"].shape == (3, 8)
    assert found["padding_mask"].all()


def test_the_picture_shows_every_head_of_every_method(tmp_path):
    rng = np.random.default_rng(0)

    def heads(kind):
        return Heads(kind, rng.random((3, 9, 9)), ["broadly"] * 3)

    entries = [Entry(f"method_{i}", heads("scores"), heads("logits"), 4.2) for i in range(2)]
    sizes = []
    for count in (1, 2):
        draw_gallery(tmp_path / "heads.png", entries[:count], "title")
        image = matplotlib.image.imread(tmp_path / "heads.png")[..., :3]
        sizes.append(image.shape)
        colored = np.ptp(image, axis=-1) > 0.1
        assert colored[:, image.shape[1] // 4 : image.shape[1] // 2].mean() > 0.2, "the left half"
        assert colored[:, -image.shape[1] // 4 :].mean() > 0.2, "the right half"
    assert sizes[0][0] < sizes[1][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--positions", "tupe_x"], "Did you mean 'tupe_"),
        (["--steps", "0"], "integer >= 1. Received: 0"),
        (["--size", "huge"], "--size must be one of"),
        (["--seed", "-1", "--corpus", "no/such/file"], "--corpus must exist"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(arguments, message, tmp_path):
    out = tmp_path / "gallery"
    assert message in commands.refusal("gallery", *arguments, "--out", out, code=2)
    assert not out.exists()
