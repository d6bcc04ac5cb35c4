"""Text files to documents, and documents to a training and a held-out part."""

import hashlib
import pathlib
import re

_SUFFIXES = (".md", ".rst", ".txt")
_BLANK_LINES = re.compile(r"\n(?:[ \t\f\v]*\n)+")


def read_documents(path):
    """Reads the documents of a text file or of a folder of text files.

    A blank line ends a document. Line breaks inside a document are kept (`split_sentences` knows
    what to do with them).

    Args:
        path: a UTF-8 file of any name, or a folder in which all files named `.txt`, `.md` or
            `.rst`, at any depth, are read in the order of their names.

    Returns:
        A list of strings, none of them blank.

    Raises:
        ValueError: if nothing is at `path`, a folder has no text files, a file is not UTF-8 (the
            message names the first bad byte), or there is no text.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise ValueError(
            "The corpus must be a text file or a folder of text files, and there is nothing under "
            f"this name. Received: path={str(path)!r}"
        )
    files = [path]
    if path.is_dir():
        found = (file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES)
        files = sorted((file for file in found if file.is_file()), key=lambda file: file.parts)
        if not files:
            raise ValueError(
                f"The corpus folder must hold files named {', '.join(_SUFFIXES)}. "
                f"Received: path={str(path)!r}"
            )
    documents = [document for file in files for document in _file_documents(file)]
    if not documents:
        raise ValueError(
            f"The corpus must have text; it is empty or blank. Received: path={str(path)!r}"
        )
    return documents


def split_documents(documents, held_out=0.1):
    """Splits documents into a training and a held-out part by the hash of their text.

    A document's part depends on nothing but its own text, so a document is never in both parts,
    and more documents never move the old ones. Exact duplicates are dropped. Both parts are
    sorted by hash: the result does not depend on the order in which the documents came.

    Args:
        documents: iterable of strings.
        held_out: expected share of the documents that is held out, from 0 to 1.

    Returns:
        `(training documents, held-out documents)`, two lists of strings.

    Raises:
        ValueError: if `held_out` is not a share.
    """
    if not 0 <= held_out <= 1:
        raise ValueError(
            f"`held_out` must be a share from 0 to 1, such as 0.1. Received: held_out={held_out}"
        )
    by_digest = sorted({_digest(document): document for document in documents}.items())
    parts = [], []
    for digest, document in by_digest:
        share = int.from_bytes(digest[:8], "big") / 2**64
        parts[share < held_out].append(document)
    return parts


def corpus_hash(documents):
    """Sixteen hexadecimal digits that name a set of documents, whatever their order."""
    digests = sorted(_digest(document) for document in documents)
    return hashlib.sha256(b"".join(digests)).hexdigest()[:16]


def count_words(documents):
    """The number of words, separated by white space, in all documents."""
    return sum(len(document.split()) for document in documents)


def _file_documents(file):
    content = file.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            "The corpus must be UTF-8 text; convert the file, for instance with iconv. "
            f"Received: file={str(file)!r}, first bad byte at offset {error.start}"
        ) from None
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    documents = (document.strip() for document in _BLANK_LINES.split(text))
    return [document for document in documents if document]


def _digest(document):
    return hashlib.sha256(document.encode("utf-8")).digest()
