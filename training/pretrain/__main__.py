"""Pre-trains an encoder by masked language modeling, on one device, several, or several machines.

    python -m training.pretrain --config laptop --data rows --out runs/tupe_r
    python -m training.pretrain --config tupe-base --data rows --out runs/base

The defaults are TUPE's (Ke et al. 2021, Table 2). `--data` is what `training.prepare` made. The
same command goes on from the last checkpoint in `--out`: to the bit, on a CPU, as if it had never
been stopped. On SIGTERM it saves and ends. The folder holds `settings.json`, `log.csv`,
`valid.csv`, TensorBoard's files, `checkpoints/`, `curves.png` and, at the end, `preset/`, which
`keras_tupe.TupeMaskedLM.from_preset` loads.

Several machines: start it on each with its TF_CONFIG; see the README.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import errno
import shlex
import sys

from keras_tupe.trainer import NonFiniteError
from training.command.settings import parse
from training.pretrain.loop import StopSignal
from training.pretrain.run import Run, folder_of_run
from training.pretrain.settings import Settings

_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, description=__doc__)
    command = shlex.join(
        ["python", "-m", "training.pretrain", *(sys.argv[1:] if arguments is None else arguments)]
    )
    try:
        pretrain(settings, command)
    except (ValueError, TypeError, FileNotFoundError) as error:
        sys.exit(f"pretrain: {error}")
    except KeyboardInterrupt:
        sys.exit("pretrain: stopped. The same command goes on from the last checkpoint.")
    except OSError as error:
        if error.errno not in _FULL_DISK:
            sys.exit(f"pretrain: {error}")
        sys.exit(
            "pretrain: There is no room on the disk for a checkpoint; the earlier ones are as "
            "they were. Make room, and the same command goes on from the last. "
            f"Received: {error.strerror}"
        )


if __name__ == "__main__":
    main()
