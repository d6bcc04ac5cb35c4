"""The gallery, run as a user runs it."""

import subprocess
import sys

import matplotlib.image
import numpy as np
import pytest
from test_quickstart import write_corpus

from training.gallery.picture import Entry, Heads, draw_gallery


def gallery(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "training.gallery", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_gallery_trains_a_method_and_writes_pictures_and_a_page(tmp_path):
    write_corpus(tmp_path / "corpus.txt")
    out = tmp_path / "gallery"
    result = gallery(
        "--positions", "alibi", "--steps", 1, "--corpus", tmp_path / "corpus.txt", "--out", out
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "heads_1.png"]
    page = (out / "README.md").read_text(encoding="utf-8")
    assert "(heads_1.png)" in page
    assert "| `alibi` | a fixed linear penalty" in page
    assert page.splitlines()[-1] in result.stdout


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
        pytest.param(["--positions", "tupe_x"], "Did you mean 'tupe_", marks=pytest.mark.slow),
        pytest.param(["--steps", "0"], "integer >= 1. Received: 0", marks=pytest.mark.slow),
        pytest.param(["--size", "huge"], "--size must be one of", marks=pytest.mark.slow),
        (["--seed", "-1", "--corpus", "no/such/file"], "--corpus must exist"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(arguments, message, tmp_path):
    out = tmp_path / "gallery"
    result = gallery(*arguments, "--out", out)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not out.exists()
