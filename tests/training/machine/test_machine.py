"""The devices of a run, by the name of their strategy."""

import pytest

from training.machine.devices import has_gpu, make_machine, no_gpu


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
