"""Compares positional methods: equal data, masks and trunk weights, several seeds, paired tests.

    python -m training.ablate --config laptop --positions none absolute tupe_r --seeds 3 \\
        --data rows --out ablations/first
    python -m training.ablate --positions absolute bert_r bert_r:max_distance=16 --seeds 5 \\
        --data rows --size tiny --steps 3000 --batch-size 32 --learning-rate 2e-3 --out ablations/b
    python -m training.ablate --objectives masked_lm replaced_token --positions absolute tupe_r \\
        --config demo --data rows --blimp blimp --out ablations/objectives
    python -m training.ablate --report-only --out ablations/first

Each run is one of `training.pretrain`, in `OUT/runs/METHOD/seed-K/`; all methods of a seed come
before the next seed. The same command goes on where it was stopped or killed, and more methods or
seeds may be added. The result: `ablation.md`, `ablation.json` and `ablation.png`, of all runs that
are finished. With `--tasks`, `--squad-train` or `--blimp` the model of each run is tested too, and
`tasks.png` shows the scores.

`--objectives` compares what is learned in pre-training, at equal FLOPs: `OUT/OBJECTIVE/` is the
ablation of one objective, with as many steps as cost what --steps of the first cost, and
`objectives.md`, `objectives.json` and `objectives.png` compare the scores of tasks.
"""

import sys

from training.ablate.settings import Settings
from training.command.settings import parse
from training.command.shell import command_of, sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "ablate")
    with sentences("ablate", "The same command goes on from here."):
        from training.ablate.objectives.settings import objectives_in

        if settings.objectives or objectives_in(settings.out):
            from training.ablate.objectives.work import compare as do
        else:
            from training.ablate.work import ablate as do

        failed = do(settings, command_of("ablate", arguments))
    if failed:
        sys.exit(
            "ablate: Some runs failed, for the reasons told above; the same command tries them "
            f"again. Received: {'; '.join(failed)}"
        )


if __name__ == "__main__":
    main()
