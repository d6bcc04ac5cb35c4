"""`kill -9` and a second process: the final folder is absent or complete, and work goes on."""

import contextlib
import json
import multiprocessing
import os
import random
import signal
import time

import prepare_cases as cases
import pytest
from prepare_cases import documents, facts, failure, files, run

from training.prepare import __main__ as prepare

NUM_MOMENTS = 20
MORE = ["--block-bytes", str(2**15), "--rows-per-shard", "2003"]


@pytest.fixture(scope="module")
def processes():
    """Real processes that need not import TensorFlow anew: each is forked by one that has it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["training.prepare", "tensorflow_datasets"])
    return context


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Files that take some seconds, and what an undisturbed run makes of them."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "in").mkdir()
    texts = documents(number=4001)
    for number in range(7):
        cases.write_text(folder / "in" / f"{number}.txt", texts[number::7])
    run(folder / "whole", folder / "in", more=MORE)
    return folder


def prepare_alone(arguments, log, begun):
    """What the other process does."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    from training.prepare import spill

    spill._BYTES_PER_COMMIT = 2**16  # so that commits come as often as files
    begun.set()
    prepare.main(arguments)


def start(processes, corpus, out):
    """Starts the command in another process; returns it when it works on its folder."""
    inputs = ["--input", str(corpus / "in"), "--out", str(out)]
    arguments = [*inputs, *cases.OPTIONS, *MORE]
    begun = processes.Event()
    process = processes.Process(
        target=prepare_alone, args=(arguments, f"{out}.log", begun), daemon=True
    )
    process.start()
    assert begun.wait(300)
    settings = out.with_name(f"{out.name}.unfinished") / "settings.json"
    while process.is_alive() and not settings.exists():
        time.sleep(0.001)
    return process


def kill(process):
    """Kills a process, which may have ended by itself just before."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def stage_of(out):
    """How far a work folder has come."""
    work = out.with_name(f"{out.name}.unfinished")
    if out.exists():
        return "in place"
    for stage, path in (("writing", "dataset"), ("packing", "rows"), ("training", "vocabulary")):
        if (work / path).exists():
            return stage
    journal = work / "documents" / "journal.json"
    if journal.exists():
        return "counting" if json.loads(journal.read_text())["complete"] else "reading on"
    return "reading"


def check_killed(processes, corpus, out, delay):
    """Kills a run after a delay, checks what is left, and lets the same command finish."""
    process = start(processes, corpus, out)
    time.sleep(delay)
    kill(process)
    stage = stage_of(out)
    if out.exists():
        prepare.main(["--verify", str(out)])
        assert files(out) == files(corpus / "whole")
    run(out, corpus / "in", more=MORE)
    prepare.main(["--verify", str(out)])
    assert files(out) == files(corpus / "whole")
    assert facts(out) == facts(corpus / "whole")
    assert sorted(path.name for path in out.parent.iterdir()) == [out.name, f"{out.name}.log"]
    return stage


def moments(processes, corpus, folder, number):
    """`number` delays, one in each part of the time that a run takes."""
    out = folder / "timed" / "rows"
    out.parent.mkdir()
    process = start(processes, corpus, out)
    begin = time.monotonic()
    process.join()
    seconds = time.monotonic() - begin
    assert process.exitcode == 0, (out.parent / "rows.log").read_text()
    assert files(out) == files(corpus / "whole")
    rng = random.Random(number)
    return [seconds * (part + rng.random()) / number for part in range(number)]


def check_moments(processes, corpus, folder, number):
    stages = []
    for index, delay in enumerate(moments(processes, corpus, folder, number)):
        out = folder / str(index) / "rows"
        out.parent.mkdir()
        stages.append(check_killed(processes, corpus, out, delay))
    return stages


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_half_done_and_goes_on(processes, corpus, tmp_path):
    assert len(set(check_moments(processes, corpus, tmp_path, 3))) > 1


@pytest.mark.slow
def test_a_run_killed_at_twenty_moments_leaves_nothing_half_done(processes, corpus, tmp_path):
    stages = check_moments(processes, corpus, tmp_path, NUM_MOMENTS)
    assert len(set(stages)) > 3, stages


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends(processes, corpus, tmp_path):
    out, rng, stages = tmp_path / "rows", random.Random(7), []
    for _ in range(NUM_MOMENTS):
        process = start(processes, corpus, out)
        time.sleep(rng.uniform(0.01, 0.9))
        kill(process)
        stages.append(stage_of(out))
    run(out, corpus / "in", more=MORE)
    assert files(out) == files(corpus / "whole")
    assert len(set(stages)) > 2, stages


@pytest.mark.slow
def test_a_second_process_on_the_same_folder_is_refused(processes, corpus, tmp_path):
    out = tmp_path / "rows"
    process = start(processes, corpus, out)
    os.kill(process.pid, signal.SIGSTOP)  # so that it is surely still at work
    try:
        message = failure(out, corpus / "in", more=MORE)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert message.startswith("prepare: Another process works in --out")
    assert f"Received: {str(tmp_path / 'rows.unfinished')!r}, process {process.pid} on " in message
    process.join()
    assert process.exitcode == 0, (tmp_path / "rows.log").read_text()
    assert files(out) == files(corpus / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows", "rows.log"]
