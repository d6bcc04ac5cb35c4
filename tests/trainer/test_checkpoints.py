"""Checkpoints are whole or not there, whatever happens to the process or to the file."""

import json
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_tupe.trainer import Checkpoints, checkpoints

ARRAYS = {
    "model/kernel": np.arange(35, dtype="float32").reshape(5, 7) / 3,
    "model/seed/0": np.array([7, 2**32 - 1], "uint32"),
    "trainer/step": np.array(11, "int32"),
    "trainer/loss_scale": np.array(np.inf, "float32"),
    "nothing": np.zeros((0, 3), "float16"),
}
FACTS = {"settings": {"steps": 11, "name": "tupe_r"}, "data": {"rows_hash": "abc"}}


@pytest.fixture
def saved(tmp_path):
    """Two checkpoints, the last of which a test may damage."""
    found = Checkpoints(tmp_path / "checkpoints")
    found.save(7, ARRAYS, FACTS)
    found.save(11, ARRAYS, FACTS)
    return found


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def assert_same(arrays, expected):
    assert sorted(arrays) == sorted(expected)
    for name, array in arrays.items():
        assert array.dtype == expected[name].dtype
        np.testing.assert_array_equal(array, expected[name], strict=True)


# === What is saved ===


def test_arrays_and_facts_come_back_as_they_were(saved):
    arrays, facts = saved.read(11)
    assert_same(arrays, ARRAYS)
    assert {name: facts[name] for name in FACTS} == FACTS
    assert facts["step"] == 11
    assert saved.read_facts(11) == facts


def test_the_newest_and_the_named_ones_stay(tmp_path):
    found = Checkpoints(tmp_path, keep=2, keep_steps=(3, 9, 1000))
    seen = []
    for step in range(3, 22, 3):
        found.save(step, ARRAYS, FACTS)
        seen.append(found.steps())
    early = [[3], [3, 6], [3, 6, 9], [3, 9, 12], [3, 9, 12, 15]]
    assert seen == [*early, [3, 9, 15, 18], [3, 9, 18, 21]]
    assert found.latest() == 21
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step_{step:010d}.safetensors" for step in (3, 9, 18, 21)
    ]


def test_a_folder_without_checkpoints_has_no_latest(tmp_path):
    assert Checkpoints(tmp_path / "none").latest() is None
    assert Checkpoints(tmp_path / "none").steps() == []
    for name in ("step_12", "step_00000000012", "step_000000001x", "notes", "step_0000000003"):
        (tmp_path / name).mkdir()
    assert Checkpoints(tmp_path).steps() == []
    assert not (tmp_path / "none").exists()


def test_saving_removes_what_killed_processes_left_and_nothing_else(saved):
    before = files(saved.folder)
    saved.save(11, {"other": np.zeros(3)}, {})  # nor writes what is there
    assert files(saved.folder) == before
    shutil.copy(saved.path(7), saved.folder / f".unfinished-{saved.path(8).name}")
    (saved.folder / "notes.txt").write_text("mine")
    saved.save(12, ARRAYS, FACTS)
    left = sorted(path.name for path in saved.folder.iterdir())
    assert left == ["notes.txt", saved.path(11).name, saved.path(12).name]


def test_a_run_that_keeps_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`keep` must be a positive integer. Received: keep=0"):
        Checkpoints(tmp_path, 0)


# === What is damaged ===

STEP_7 = "step_0000000007.safetensors"
DAMAGES = {
    "cut in the middle": lambda path: cut(path, 500),
    "cut by a byte": lambda path: cut(path, -1),
    "empty": lambda path: cut(path, 0),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "of another kind": lambda path: path.write_bytes(b"\xff\xfe{" * 99),
    "without facts": lambda path: save_file({"w": np.zeros(3)}, path),
    "facts that are no dictionary": lambda path: save_file(ARRAYS, path, {"keras_tupe": "[1]"}),
    "facts without a hash": lambda path: save_file(ARRAYS, path, {"keras_tupe": '{"step": 11}'}),
    "of another step": lambda path: shutil.copy(path.with_name(STEP_7), path),
    "a folder": lambda path: path.unlink() or path.mkdir(),
}


def cut(path, size):
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_told_with_its_file(damage, saved):
    path = saved.path(11)
    DAMAGES[damage](path)
    before = files(saved.folder)
    with pytest.raises(ValueError, match=r"^The checkpoint is damaged: .+\. Remove ") as error:
        saved.read(11)
    assert str(error.value).endswith(f"Remove it to go on from {STEP_7}. Received: {str(path)!r}")
    assert files(saved.folder) == before
    assert_same(saved.read(7)[0], ARRAYS)
    saved.path(7).unlink()
    with pytest.raises(ValueError, match="Remove it to go on from the start"):
        saved.read(11)


def test_no_flipped_bit_goes_unseen(saved):
    path = saved.path(11)
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"^The checkpoint is damaged: "):
            saved.read(11)


def test_a_link_in_the_place_of_a_partial_file_is_not_followed(saved, tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (saved.folder / f".unfinished-{saved.path(12).name}").symlink_to(mine)
    saved.save(12, ARRAYS, FACTS)
    assert mine.read_text() == "mine"
    assert_same(saved.read(12)[0], ARRAYS)


# === A full disk and `kill -9` ===


@pytest.mark.parametrize("limit", [0, 100, 5000])
def test_a_full_disk_leaves_the_earlier_checkpoints(limit, saved):
    before = files(saved.folder)
    large = {**ARRAYS, "large": np.zeros(5000, "float32")}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            saved.save(12, large, FACTS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(saved.folder) == before
    saved.save(12, large, FACTS)
    assert_same(saved.read(12)[0], large)


# A process of its own, small enough to fork: each child is killed one file operation later than
# the one before, until one gets to the end.
KILLER = """
import importlib.util, json, os, pathlib, signal, sys, types
import numpy as np

package = types.ModuleType("keras_tupe")  # without what it imports: a process that is soon forked
package.__path__ = [str(pathlib.Path(sys.argv[1]).parents[1])]
sys.modules["keras_tupe"] = package
spec = importlib.util.spec_from_file_location("checkpoints", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir")


def arrays(step):
    return {"w": np.full(3001, step, "float32"), "step": np.array(step)}


def save_all(folder, moment, done):
    count = 0

    def hook(event, arguments):
        nonlocal count
        if event in EVENTS and moment is not None:
            count += 1
            if count > moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    checkpoints = module.Checkpoints(folder, keep=2, keep_steps=[1])
    checkpoints.tidy()  # what the one before left
    for step in range((checkpoints.latest() or 0) + 1, 5):
        checkpoints.save(step, arrays(step), {})
        os.write(done, bytes([step]))


def killed(folder, moment):
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        save_all(folder, moment, theirs)
        os._exit(0)
    os.close(theirs)
    reported = os.read(ours, 100)
    while more := os.read(ours, 100):
        reported += more
    os.close(ours)
    return os.waitpid(child, 0)[1] == signal.SIGKILL, max(reported, default=0)


facts = {"left": set(), "kills": 0, "ended": 0}
for moment in range(1000):
    folder = pathlib.Path(sys.argv[2], str(moment))
    was_killed, reported = killed(folder, moment)
    checkpoints = module.Checkpoints(folder, keep=2, keep_steps=[1])
    steps = checkpoints.steps()
    assert (steps or [0])[-1] in (reported, reported + 1), (moment, steps, reported)
    assert reported < 1 or 1 in steps, (moment, steps)
    for step in steps:
        found, record = checkpoints.read(step)
        assert record["step"] == step
        for name, array in arrays(step).items():
            assert (found[name] == array).all(), (moment, step)
    if folder.exists():
        facts["left"] |= {path.name for path in folder.glob(".*")}
    save_all(folder, None, 1)
    facts["ended"] += sorted(path.name for path in folder.iterdir()) == [
        f"step_{step:010d}.safetensors" for step in (1, 3, 4)
    ]
    if not was_killed:
        break
    facts["kills"] += 1
print(json.dumps({**facts, "left": sorted(facts["left"])}), file=sys.stderr)
"""


def test_a_save_that_is_killed_at_any_moment_leaves_whole_checkpoints(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", KILLER, checkpoints.__file__, tmp_path],
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    facts = json.loads(ended.stderr)
    assert facts["kills"] > 15
    parts = {f".unfinished-step_{step:010d}.safetensors" for step in range(1, 5)}
    assert set(facts["left"]) == parts, "every place was hit"
    assert facts["ended"] == facts["kills"] + 1
