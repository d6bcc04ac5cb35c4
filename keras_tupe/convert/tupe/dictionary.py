"""The `dict.txt` of fairseq: which token has which id."""

import pathlib

# What TUPE's code puts before the lines of the file; fairseq itself stops after the fourth.
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<file>", "<email>", "<url>")
NUM_SPECIAL = {"TUPE's code": 7, "fairseq's": 4}
MASK_TOKEN = "<mask>"


def read_fairseq_dictionary(path):
    """Returns the tokens in a dictionary, in order.

    Args:
        path: path of the file. A line is a token, a space and a count.

    Returns:
        Tuple of texts: without the special tokens, which are not in the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not UTF-8, a line has another form, or there is none.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            "There is no such dictionary; expected the path of fairseq's dict.txt, or None. "
            f"Received: dictionary={str(path)!r}"
        )
    try:
        lines = path.read_bytes().decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            "A dictionary must be a text in UTF-8. "
            f"Received: dictionary={str(path)!r}, first bad byte at offset {error.start}"
        ) from None
    if not lines[-1]:
        lines.pop()
    tokens = []
    for number, line in enumerate(lines, 1):
        token, space, count = line.removesuffix("\r").rpartition(" ")
        if not space or not (count.isascii() and count.isdigit()):
            raise ValueError(
                "A line of a dictionary must be a token, one space and a count, as fairseq writes "
                f"them. Received: dictionary={str(path)!r}, line {number}: {line[:100]!r}"
            )
        tokens.append(token)
    if not tokens:
        raise ValueError(
            f"A dictionary must have at least one line. Received: dictionary={str(path)!r}"
        )
    return tuple(tokens)


def special_ids(tokens, vocabulary_size, source):
    """Returns the ids of the special tokens.

    fairseq puts its special tokens first and `<mask>` last, unless a line is `<mask>` itself.

    Args:
        tokens: tuple of texts, the lines of the dictionary.
        vocabulary_size: rows of the token embedding.
        source: how messages name dictionary and checkpoint.

    Returns:
        Dictionary: special token -> id.

    Raises:
        ValueError: if the dictionary does not fill the embedding.
    """
    has_mask = MASK_TOKEN in tokens
    sizes = {name: count + len(tokens) + (not has_mask) for name, count in NUM_SPECIAL.items()}
    for name, count in NUM_SPECIAL.items():
        if sizes[name] == vocabulary_size:
            ids = {token: place for place, token in enumerate(SPECIAL_TOKENS[:count])}
            mask = count + tokens.index(MASK_TOKEN) if has_mask else vocabulary_size - 1
            return {**ids, MASK_TOKEN: mask}
    expected = " or ".join(
        f"{size} (with the {NUM_SPECIAL[n]} of {n})" for n, size in sizes.items()
    )
    raise ValueError(
        f"The dictionary belongs to another checkpoint: its {len(tokens)} lines and the special "
        f"tokens make a vocabulary of {expected}, the token embedding has {vocabulary_size} rows. "
        f"Received: {source}"
    )
