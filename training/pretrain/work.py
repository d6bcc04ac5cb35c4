"""The run of a command line, done or gone on with, and how it ends."""

import os
import sys

from keras_tupe.trainer import NonFiniteError
from training.pretrain.loop import StopSignal
from training.pretrain.run import Run, folder_of_run


def pretrain(settings, command):
    """Does, or goes on with, the run of `settings`.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Raises:
        ValueError: if something does not fit together, or another run is at work in the folder.
    """
    with folder_of_run(settings):
        _pretrain(settings, command)


def _pretrain(settings, command):
    run = Run(settings)
    try:
        with StopSignal() as stop:
            run.begin(command)
            if run.step:
                print(f"pretrain: goes on from step {run.step:,}.", file=sys.stderr)
            done = run.train(stop)
            if done:
                run.finish()
    except NonFiniteError as error:
        numbers = run.rows.row_numbers(error.step).tolist()
        sys.exit(
            f"pretrain: the loss or its gradient is not finite at step {error.step}; nothing was "
            f"changed by it. Rows of the batch: {numbers}. Last good checkpoint: "
            f"{run.saver.last_good()}. Lower --learning-rate, or tolerate such steps with "
            f"--skip-bad-steps. Received: {error.skipped_steps} bad steps so far"
        )
    except run.machine.losses as error:
        _end_alone(run, error)
    if not done:
        print(
            f"pretrain: stopped after step {run.step:,}, which is saved. The same command goes on "
            "from there.",
            file=sys.stderr,
        )


def _end_alone(run, error):
    """Ends a worker whose peers are gone, at once: an orderly end would wait for them."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    reason = next((line for line in lines if "Collective ops" in line), lines[0])
    print(
        f"pretrain: worker {run.machine.worker} lost another one. Start the same command on every "
        f"host again: it goes on from {run.saver.last_good()}. Received: {reason}",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)
