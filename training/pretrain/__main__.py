"""Pre-trains an encoder, by masked language modeling or another objective, on any devices.

    keras-tupe pretrain --config laptop --data rows --out runs/tupe_r
    keras-tupe pretrain --config tupe-base --data rows --out runs/base

The defaults are TUPE's (Ke et al. 2021, Table 2). `--data` is what `keras-tupe prepare` made. The
same command goes on from the last checkpoint in `--out`: to the bit, on a CPU, as if it had never
been stopped. On SIGTERM it saves and ends. The folder holds `settings.json`, `log.csv`,
`valid.csv`, TensorBoard's files, `checkpoints/`, `curves.png` and, at the end, `preset/`, which
`keras_tupe.TupeMaskedLM.from_preset` loads, or the class of the objective.

Several machines: start it on each with its TF_CONFIG; see docs/pages/guides/machines.md.
"""

from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.pretrain.settings import Settings

_NO_ROOM = (
    "There is no room on the disk for a checkpoint; the earlier ones are as they were. Make room, "
    "and the same command goes on from the last."
)


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "pretrain")
    with sentences("pretrain", "The same command goes on from the last checkpoint.", _NO_ROOM):
        from training.pretrain.run import pretrain

        pretrain(settings, command_of("pretrain", arguments))


if __name__ == "__main__":
    main()
