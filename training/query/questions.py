"""Questions for a model whose text is not known: small sets, one per manner of writing."""

import dataclasses

BEGINNINGS = ("The", "He was", "In the")  # of texts, for a causal language model
MASKS = ("[MASK]", "<mask>")  # as vocabularies write a blank; the first, in these questions


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions in one manner of writing.

    Attributes:
        style: its name.
        fill: texts with a blank.
        nearest: texts to find the nearest sentences to.
        sentences: what is ranked then.
    """

    style: str
    fill: tuple
    nearest: tuple
    sentences: tuple

    @property
    def num_words(self):
        """Number of words of the sentences."""
        return sum(len(text.split()) for text in self.sentences)


STYLES = (
    Questions(
        "documentation",
        fill=(
            "Returns a [MASK] of the array.",
            "If the file does not [MASK], an error is raised.",
            "The default [MASK] is None.",
        ),
        nearest=("Write the text to a file on disk.",),
        sentences=(
            "Open the file and read the whole content.",
            "Return the sum of the elements over an axis.",
            "The gradient of the loss with respect to the weights.",
            "Raise an exception if the argument is not valid.",
            "Convert the string to lower case.",
            "Remove the directory and all files in it.",
            "A layer that applies dropout to the input.",
            "Wait until the thread has finished.",
        ),
    ),
    Questions(
        "novel",
        fill=(
            "She opened the [MASK] and went into the room.",
            "He had not seen [MASK] for many years.",
            "It was a cold [MASK] in the winter.",
        ),
        nearest=("He closed the window and sat down by the fire.",),
        sentences=(
            "She opened the door and looked into the room.",
            "They walked home together in the rain.",
            "My father was a poor man all his life.",
            "I do not know what you mean, said the girl.",
            "The old house stood on a hill above the sea.",
            "He took the letter and read it twice.",
            "The horses were tired and the road was long.",
            "She loved him, and he did not know it.",
        ),
    ),
    Questions(
        "encyclopedia",
        fill=(
            "The town is the capital of the [MASK].",
            "He was born in the [MASK] of the century.",
            "The river flows into the [MASK].",
        ),
        nearest=("The city lies on the coast in the south of the country.",),
        sentences=(
            "The village is in the north of the province.",
            "The population of the region was counted in two thousand and ten.",
            "The species lives in the forests of South America.",
            "The album was released by the band in the same year.",
            "He studied law and became a member of the parliament.",
            "The company was founded in the nineteenth century.",
            "The war ended with a treaty between both countries.",
            "The element is a metal of low density.",
        ),
    ),
)


def fitting(count):
    """Returns the questions that a vocabulary writes in the fewest pieces per word.

    Args:
        count: function of a list of texts that returns the number of pieces of each.

    Returns:
        The `Questions`, and the pieces per word of all: dictionary of style -> number.

    Example:
        >>> found, shares = fitting(lambda texts: [len(text) for text in texts])
        >>> found.style, [round(share, 1) for share in shares.values()]
        ('novel', [5.5, 4.7, 5.5])
    """
    shares = {each.style: sum(count(list(each.sentences))) / each.num_words for each in STYLES}
    return min(STYLES, key=lambda each: shares[each.style]), shares
