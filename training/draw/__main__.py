"""Draws what positional methods do: per head, with [CLS] apart from the words.

    python -m training.draw t5 xlnet
    python -m training.draw my_method.py --size base --length 128
    python -m training.draw --model saved_models/novels/preset
    python -m training.draw --model saved_models/quickstart/preset --text "Open the file." notes.txt
    python -m training.draw --model runs/qkr_4/preset --channels
    python -m training.draw --model runs/absolute/preset --text notes.txt --correlations

Without --model every METHOD is drawn in an encoder at initialization. Position logits of the
first block, tables of weights by distance, and, of a text, attention scores averaged over the
text's paragraphs. Each head gets the name of its pattern, see `keras_tupe.analysis`.
"""

from training.command.report import table
from training.command.settings import parse
from training.command.shell import sentences
from training.draw.settings import Settings

OF_CLS = "[CLS]: the share of the words' attention that it receives, and of its own that it gives:"
COLUMNS_OF_CLS = ["block", "head", "received", "given", "received, even", "given, even"]


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "draw")
    with sentences("draw", "Pictures that are there are whole."):
        from training.draw.drawings import draw

        drawings = draw(settings)
    rows = [[drawing.file, *row] for drawing in drawings for row in drawing.rows]
    print(table(["file", "head", "pattern", "Toeplitz energy", "rank"], rows))
    shares = [row for drawing in drawings for row in drawing.cls_rows]
    if shares:
        print(f"\n{OF_CLS}")
        print(table(COLUMNS_OF_CLS, shares))
    for drawing in drawings:
        if drawing.note:
            print(f"\n{drawing.note}")
    print(f"\n{len(drawings)} pictures in {settings.out}")


if __name__ == "__main__":
    main()
