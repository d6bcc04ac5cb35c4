"""Asks what position methods can learn: eight tasks whose answers depend on positions.

    python -m training.probe --positions none absolute t5 tupe_a tupe_r --seeds 2 --out probes
    keras-tupe probe --positions tupe_r --tasks offset reversed_copy --out probes/two

Each run trains one small encoder from nothing on all tasks at once, on rows that are made as they
are needed and never come twice; about a minute of two cores. A row is [CLS], the name of its task,
a number, letters and [SEP], and its answers are asked at one position, at some or at all. Then
rows of the length of training and of longer ones are answered, and the scores of all methods and
seeds become a table and a picture, beside what each method can reach at most: `none` cannot tell
orders apart, nor a position table those at positions that training never had. A score above that
ends the command with an error.

The folder gets `probe.json`, `probe.md` and `probe.png`, and a folder for each method and seed. The
same command goes on where it was stopped, and does nothing twice when methods or seeds are added.
"""

from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.probe.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "probe")
    with sentences("probe", "The same command goes on with the runs that are left."):
        from training.probe.work import probe

        text = probe(settings, command_of("probe", arguments))
    print(text)
    print(names_of(settings.out, "probe.json", "probe.md", "probe.png"))


if __name__ == "__main__":
    main()
