"""Trains every positional method for a short time and draws what it learned about positions.

    python -m training.gallery
    python -m training.gallery --positions tupe_r,qkr_3,my_method.py --steps 2000 --out mine

All methods get the same data, masks and steps, those of `training.quickstart`. Writes to `--out` a
picture per method, `heads/NAME.png`, a page, `README.md`, and its numbers, `gallery.json`. All
methods take about half an hour on two cores; more can be added to a gallery that has the same data
and settings.
"""

from training.command.settings import parse
from training.command.shell import sentences
from training.gallery.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "gallery")
    with sentences("gallery", "Nothing was written."):
        from training.gallery.work import make_gallery

        text = make_gallery(settings)
    print(text.split("\n\n")[-1])
    print(f"pictures and page in {settings.out}")


if __name__ == "__main__":
    main()
