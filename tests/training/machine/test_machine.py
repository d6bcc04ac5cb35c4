"""The devices of a run, by the name of their strategy, and their peak FLOP/s."""

import pytest

from training.machine.devices import has_gpu, make_machine, no_gpu
from training.machine.kind import known_peak, matmul_peak, measured_peak


@pytest.mark.skipif(has_gpu(), reason="tests what is said where there is no GPU")
def test_replicas_of_a_cpu_are_not_taken_for_gpus_without_a_word(tensorflow, capsys):
    machine = make_machine("mirrored")
    (line,) = capsys.readouterr().err.splitlines()
    assert line == no_gpu("mirrored", machine.num_replicas)
    assert "no GPU was found" in line
    make_machine("one")
    assert capsys.readouterr().err == ""
    assert "so 2 replicas of the CPU" in no_gpu("mirrored", 2)
    assert no_gpu("auto", 1) is None


@pytest.mark.parametrize(
    ("name", "dtype", "uses_tf32", "expected"),
    [
        ("NVIDIA H200", "bfloat16", True, 989e12),
        ("NVIDIA H200", "float32", False, 67e12),
        ("NVIDIA H200", "float32", True, 494e12),
        ("NVIDIA H100 80GB HBM3", "float16", True, 989e12),
        ("NVIDIA H100 PCIe", "bfloat16", True, 756e12),
        ("NVIDIA A100-SXM4-80GB", "bfloat16", True, 312e12),
        ("Tesla V100-SXM2-16GB", "float32", True, 15.7e12),
        ("Tesla V100-SXM2-16GB", "bfloat16", True, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "bfloat16", True, None),
        ("NVIDIA GH200 480GB", "bfloat16", True, None),
        ("NVIDIA L4", "bfloat16", True, 121e12),
        ("TPU v5 lite", "bfloat16", True, 197e12),
        ("TPU v5", "bfloat16", True, 459e12),
        ("TPU v5", "float32", True, None),
        ("", "float32", True, None),
    ],
)
def test_peaks_of_data_sheets_are_found_by_the_name_of_the_device(name, dtype, uses_tf32, expected):
    assert known_peak(name, dtype, uses_tf32) == expected


def test_an_unknown_device_is_measured():
    assert 1e8 < measured_peak("float32", seconds=0.02) < 1e16
    assert 1e8 < matmul_peak("mixed_bfloat16") < 1e16
