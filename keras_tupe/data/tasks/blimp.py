"""BLiMP: minimal pairs of sentences, of which one is grammatical."""

import dataclasses
import json
import pathlib
import re

from keras_tupe._json_file import parse_json
from keras_tupe.data.tasks._lines import file_place, read_lines

_TEXTS = ("sentence_good", "sentence_bad")
_NAMES = ("UID", "field", "linguistics_term")


@dataclasses.dataclass(frozen=True)
class BlimpParadigm:
    """The minimal pairs of one paradigm.

    Args:
        uid: name of the paradigm, such as `adjunct_island`.
        field: `syntax`, `morphology`, `semantics` or, in two spellings, syntax and semantics.
        linguistics_term: the phenomenon, such as `island_effects`.
        good: list of the grammatical sentences.
        bad: list of the ungrammatical ones, in the same order.
    """

    uid: str
    field: str
    linguistics_term: str
    good: list
    bad: list


def read_blimp(path, *, skipped=None):
    """Reads minimal pairs.

    The full set has 67 paradigms of 1,000 pairs; any part of it can be read.

    Args:
        path: a `.jsonl` file of BLiMP, or a folder of them.
        skipped: a list: then bad lines are left out, and a sentence for each is appended to it.
            Without it the first bad line is an error.

    Returns:
        List of `BlimpParadigm`s, in the order of their names.

    Raises:
        ValueError: if there are no such files; a file is not UTF-8 or is empty; a line is no JSON,
            lacks a key or a sentence, or belongs to another paradigm than the line before; or
            two files hold one paradigm. Messages name file and line.

    References:
        Warstadt et al. BLiMP: The Benchmark of Linguistic Minimal Pairs for English. TACL 2020.
        https://arxiv.org/abs/1912.00582
    """
    path = pathlib.Path(path)
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise ValueError(
            f"A folder of BLiMP must hold files named .jsonl. Received: path={str(path)!r}"
        )
    paradigms = {}
    for file in files:
        paradigm = _read_file(file, skipped)
        if paradigm.uid in paradigms:
            raise ValueError(
                "Each paradigm must be in one file; remove one of the two. Received: "
                f"UID {paradigm.uid!r} in {str(paradigms[paradigm.uid][1])!r} and {str(file)!r}"
            )
        paradigms[paradigm.uid] = paradigm, file
    return [paradigm for _, (paradigm, _) in sorted(paradigms.items())]


def _read_file(path, skipped):
    names, pairs = None, []
    for number, line in enumerate(read_lines(path, "a file of BLiMP"), 1):
        try:
            row = _parse(line, path, number)
            found = tuple(row[name] for name in _NAMES)
            if names not in (None, found):
                raise ValueError(
                    f"All lines of a file must have the same {', '.join(_NAMES)}: {names}. "
                    f"Received: {file_place(path, number)}, {found}"
                )
        except ValueError as error:
            if skipped is None:
                raise
            skipped.append(str(error))
            continue
        names = found
        pairs.append(tuple(row[name] for name in _TEXTS))
    if not pairs:
        raise ValueError(
            "A file of BLiMP must have at least one good line. "
            f"Received: file={str(path)!r}, where all lines are bad"
        )
    return BlimpParadigm(*names, *map(list, zip(*pairs, strict=True)))


def _parse(line, path, number):
    try:
        row = parse_json(line)
    except ValueError as error:
        is_syntax = isinstance(error, json.JSONDecodeError)
        reason = f"{error.msg} in column {error.colno}" if is_syntax else str(error)
        raise ValueError(
            "A line of BLiMP must be one JSON object. "
            f"Received: {file_place(path, number)}, {reason}"
        ) from None
    bad = [
        name
        for name in (*_TEXTS, *_NAMES)
        if not isinstance(row, dict) or not isinstance(row.get(name), str) or not row[name].strip()
    ]
    if bad:
        raise ValueError(
            f"A line of BLiMP must be an object with text under {[*_TEXTS, *_NAMES]}. "
            f"Received: {file_place(path, number)}, without text under {bad}"
        )
    if not re.fullmatch(r"[\w-]+", row["UID"]):
        raise ValueError(
            "A UID of BLiMP must be of letters, digits, _ and -, since results are filed by it. "
            f"Received: {file_place(path, number)}, {row['UID']!r}"
        )
    return row
