"""Shows what a trained model knows: words for blanks, near sentences, word order, positions.

    keras-tupe demo

The model is the small one that the repository holds, see `saved_models/README.md`: an encoder of
English novels of 1839 to 1929. Nothing is downloaded, trained, or written but one picture.
`keras-tupe query` asks it your own questions.
"""

import time

from training.command.settings import parse
from training.command.shell import sentences
from training.demo.settings import Settings


def main(arguments=None):
    """Runs the command line."""
    started = time.monotonic()
    settings = parse(Settings, arguments, __doc__, "demo")
    with sentences("demo", "Nothing is lost."):
        from training.demo.show import show

        show(settings)
    print(f"\n{time.monotonic() - started:.0f} s in all")


if __name__ == "__main__":
    main()
