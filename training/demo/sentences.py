"""Sentences in the manner of the novels that the committed model was trained on.

Written for this purpose; none is out of a book.
"""

import random

BLANKS = (
    "She opened the [MASK] and looked out into the garden.",
    "He put his [MASK] in his pocket and walked away.",
    "They had been married for twenty [MASK].",
    "It is time to go to [MASK].",
)
QUESTIONS = (
    "The wind blew and the waves were high.",
    "She sang a song.",
)
SENTENCES = (
    "The old house stood on a hill above the sea.",
    "She opened the window and looked down into the street.",
    "My father was a poor man all his life.",
    "He took the letter from the table and read it twice.",
    "They walked home together in the rain.",
    "The captain did not leave his ship until the morning.",
    "She sat by the fire with a book in her hand.",
    "I have never been so happy in my life.",
    "The horses were tired and the road was long.",
    "He told her that he loved her, and she said nothing.",
    "The boat was carried away by the wind and the waves.",
    "There was a knock at the door, and the servant came in.",
    "The doctor said that the child would not live.",
    "We had dinner at seven, and went to bed at ten.",
    "Nobody in the village knew where he came from.",
    "She gave the boy a piece of bread and a cup of tea.",
    "The soldiers marched through the town at night.",
    "He had lost all his money, and could not pay his debts.",
    "It was a cold morning, and there was snow on the ground.",
    "They were to be married in the church on Sunday.",
    "The young lady played the piano and sang.",
    "He did not believe a word of what she had told him.",
    "The train was late, and we waited for an hour.",
    "Her mother had died when she was a little girl.",
    "The judge asked the man whether he had killed his brother.",
)


def shuffled(text, seed=0):
    """Returns a sentence with its words in another order; the mark at its end stays there.

    Example:
        >>> shuffled("The old house stood on a hill.")
        'The a house on hill stood old.'
    """
    words, mark = text[:-1].split(), text[-1]
    random.Random(f"{seed} {text}").shuffle(words)
    return " ".join(words) + mark
