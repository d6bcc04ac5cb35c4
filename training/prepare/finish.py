"""What is checked and recorded once all blocks are packed."""

from keras_tupe.data import file_hash
from training.prepare import vocabulary
from training.prepare.blocks import no_statistics


def check_size(statistics, settings):
    """Raises a ValueError if the training text does not fill one row, or there are no pairs."""
    if settings.pairs is not None:
        _check_pairs(statistics, settings)
    if statistics["train"]["tokens"] < settings.length - 2:
        raise ValueError(
            f"The training part is too small for one row of {settings.length} tokens. Give more "
            "text, choose shorter rows (--length) or hold less out (--valid). "
            f"Received: tokens={statistics['train']['tokens']}, "
            f"documents={statistics['train']['documents']}"
        )


def _check_pairs(statistics, settings):
    needed = 2 if settings.pairs == "next" else 1
    number = {1: "one document", 2: "two documents, each a source of the other's random segments,"}
    for part, facts in statistics.items():
        found = facts["documents"] - facts["documents_without_pair"]
        if facts["documents"] and found < needed:
            raise ValueError(
                f"For --pairs {settings.pairs} the {part} part needs {number[needed]} of at least "
                "two sentences. Give longer documents (a blank line separates them), or more of "
                f"them, change --valid, or leave --pairs out. Received: documents of one sentence: "
                f"{facts['documents_without_pair']}, of more: {found}"
            )


def check_complete(statistics, num_documents):
    """Raises a RuntimeError unless every document, of `num_documents`, has been packed once."""
    packed = sum(part["documents"] for part in statistics.values())
    if packed != num_documents:
        raise RuntimeError(
            "Documents were lost or packed twice: this is a mistake of keras_tupe or of the Beam "
            f"runner. Received: {packed} documents packed, {num_documents} read"
        )


def total(facts, pairs):
    """The facts of all blocks of a part in one: `statistics` and `corpus_hash`."""
    counts, names = [one["statistics"] for one in facts], no_statistics(pairs)
    return {
        "statistics": {name: sum(one[name] for one in counts) for name in names},
        "corpus_hash": sum(one["corpus_hash"] for one in facts) % 2**256,
    }


def record(folder, tokenizer, settings, parts, found):
    """Adds the vocabulary and the list of bad documents to the shards; returns the record."""
    tokenizer.save(folder / tokenizer.file_name)
    problems = found["problems"]
    if problems["count"]:
        text = "".join(f"{message}\n" for message in problems["messages"])
        (folder / "skipped.txt").write_text(text, "utf-8", "surrogateescape")  # file names
    vocabulary_hash = file_hash(folder / tokenizer.file_name)
    corpus = sum(part["corpus_hash"] for part in parts.values()) % 2**256
    return {
        "length": settings.length,
        **({} if settings.pairs is None else {"pairs": settings.pairs}),
        "vocabulary": vocabulary.facts(tokenizer, settings, vocabulary_hash),
        "splits": {
            name: part["statistics"] for name, part in parts.items() if part["statistics"]["rows"]
        },
        "duplicates": found["duplicates"],
        "skipped": problems["count"],
        "corpus_hash": f"{corpus:064x}",
    }
