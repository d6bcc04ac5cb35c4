"""The benchmark of windows: its arithmetic, its page, and one step of a tiny model."""

import math

import pytest

from benchmarks.windows import collect, ours, settings


def measured(label, length, cpu, mib):
    ratios = dict.fromkeys(("ratio", "cpu_ratio", "memory_ratio"))
    return {
        "label": label, "length": length, "ms": cpu / 2, "cpu_ms": cpu, "peak_memory_mib": mib,
        **ratios,
    }  # fmt: skip


def test_slopes_are_those_of_logarithms():
    found = collect.slopes(
        [
            measured("linear", 100, 3.0, 5.0),
            measured("square", 100, 1.0, 1.0),
            measured("linear", 800, 24.0, 5.0),
            measured("square", 800, 64.0, 512.0),
            measured("alone", 100, 1.0, 1.0),
        ]
    )
    assert [one["label"] for one in found] == ["linear", "square"]
    assert [round(one["time"], 9) for one in found] == [1, 2]
    assert [round(one["memory"], 9) for one in found] == [0, 3]
    assert (found[0]["shortest"], found[0]["longest"]) == (100, 800)


def test_ratios_are_of_the_same_round():
    own = [{"wall": 2.0, "cpu": 3.0}, {"wall": 8.0, "cpu": 3.0}, {"wall": 3.0, "cpu": 9.0}]
    peer = [{"wall": 4.0, "cpu": 3.0}, {"wall": 4.0, "cpu": 6.0}, {"wall": 4.0, "cpu": 9.0}]
    found = collect._to_peer(own, 10.0, peer, 40.0)
    assert found == {"memory_ratio": 0.25, "ratio": 0.75, "cpu_ratio": 1.0}
    assert set(collect._to_peer(own, 10.0, None, None).values()) == {None}


@pytest.mark.slow
def test_a_step_trains():
    job = {
        "position": "tupe_r", "sizes": {**settings.SIZES, "num_layers": 1},
        "vocabulary_size": 50, "length": 80, "window": 3, "remat": False,
    }  # fmt: skip
    step, facts = ours.prepare(job)
    losses = [step()["loss"] for _ in range(2)]
    assert all(map(math.isfinite, losses))
    assert "keras" in facts["versions"]
