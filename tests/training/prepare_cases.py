"""Small corpora, and what a preparation must make of them, written a second time without it."""

import gzip
import hashlib
import json
import random

import commands
import numpy as np

from keras_tupe.data import clean_text, split_sentences
from keras_tupe.tokenizers import SentencePieceBpe, WordPiece

LENGTH = 29
VALID = 0.23
OPTIONS = ("--vocabulary-size", "300", "--length", str(LENGTH), "--valid", str(VALID))

_SYLLABLES = ["ba", "ke", "li", "mo", "nu", "ta", "re", "so", "shi", "qua"]
# accents apart from their letters, what clean-up takes away, and characters that are rare
_ODD = ["Cafe\u0301", "\u00adno\u200bte", "a\u00a0\t b", "stra\u00dfe", "x\u200dy"]


def documents(seed=11, number=97):
    """Different raw documents without blank lines; some have sentences longer than a row."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(211)]
    return [_document(rng, words) for _ in range(number)]


def _document(rng, words):
    sentences = []
    for _ in range(rng.randint(1, 7)):
        chosen = rng.choices(words, k=rng.choice((3, 5, 7, 11, 13, 61)))
        if rng.random() < 0.2:
            chosen.append(rng.choice([*_ODD, chr(0x4E00 + rng.randrange(97))]))
        sentences.append(" ".join(chosen).capitalize() + rng.choice(".!?"))
    return "".join(sentence + rng.choice((" ", "  ", "\n")) for sentence in sentences)


def write_text(path, texts):
    """Writes documents as plain text; a suffix `.gz` compresses."""
    content = "\n\n".join(texts).encode("utf-8")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_jsonl(path, texts, field="text"):
    """Writes documents as JSON lines."""
    lines = [json.dumps({"id": i, field: text}) for i, text in enumerate(texts)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def words(out, *inputs, options=OPTIONS, more=()):
    """Returns a command line."""
    return commands.words_of("--input", *inputs, "--out", out, *options, *more)


def run(out, *inputs, options=OPTIONS, more=()):
    """Prepares in this process; returns the folder that was made."""
    printed = commands.done("prepare", *words(out, *inputs, options=options, more=more))
    assert printed.strip()
    assert not (out.parent / f"{out.name}.unfinished").exists()
    return out


def failure(out, *inputs, options=OPTIONS, more=()):
    """Prepares in vain; returns the sentence."""
    message = commands.refusal("prepare", *words(out, *inputs, options=options, more=more), code=1)
    assert "\n" not in message
    return message


def files(folder):
    """The content of all files but the record, by name."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "preparation.json"}


def record(folder):
    """`preparation.json`."""
    return json.loads((folder / "preparation.json").read_text("utf-8"))


def facts(folder):
    """The record without what tells where the text came from."""
    where = ("command", "fingerprint", "seal")
    return {k: v for k, v in record(folder).items() if k not in where}


def rows(folder, part):
    """All rows of a part in their order, a list of lists, as plain NumPy reads them."""
    return [row for shard in shards(folder, part) for row in np.load(shard).tolist()]


def shards(folder, part):
    """Paths of the files of rows of a part, in their order."""
    return sorted(path for path in folder.glob(f"{part}-*.npy") if ".pairs" not in path.name)


def tokenizer_of(folder):
    """The tokenizer of a prepared folder."""
    vocabulary = record(folder)["vocabulary"]
    cls = {"wordpiece": WordPiece, "sentencepiece": SentencePieceBpe}[vocabulary["kind"]]
    return cls(folder / vocabulary["file"], lowercase=vocabulary["lowercase"])


def expected_parts(texts, valid=VALID):
    """`{part: [(digest in hexadecimal digits, cleaned text), ...]}`, sorted, without duplicates."""
    cleaned = filter(None, map(clean_text, texts))
    unique = {hashlib.sha256(text.encode("utf-8")).hexdigest(): text for text in cleaned}
    parts = {"train": [], "valid": []}
    for digest, text in sorted(unique.items()):
        part = "valid" if int(digest[:16], 16) < valid * 2**64 else "train"
        parts[part].append((digest, text))
    return parts


def expected_blocks(members, block_bytes):
    """The documents of each block, as lists of texts."""
    size = sum(len(text.encode("utf-8")) for _, text in members)
    num_blocks = 1
    while num_blocks * block_bytes < size:
        num_blocks *= 2
    blocks = [[] for _ in range(num_blocks)]
    for digest, text in members:
        blocks[int(digest[16:24], 16) * num_blocks // 2**32].append(text)
    return blocks


def expected_rows(texts, tokenizer, length):
    """The rows of one block, token by token, and its statistics."""
    found = [(number, s) for number, text in enumerate(texts) for s in split_sentences(text)]
    ids = tokenizer.tokenize([sentence for _, sentence in found]).to_list() if found else []
    capacity, filled, row, last = length - 2, [], [], None
    sentences = [(number, tokens) for (number, _), tokens in zip(found, ids, strict=True) if tokens]
    for number, tokens in sentences:
        between = [tokenizer.end_id] if row and number != last else []
        needed = len(tokens) if len(tokens) <= capacity else 1
        if len(row) + len(between) + needed > capacity:
            filled.append(row)
            row, between = [], []
        row, last = row + between, number
        for token in tokens:
            if len(row) == capacity:
                filled.append(row)
                row = []
            row = [*row, token]
    filled += [row] if row else []
    framed = [[tokenizer.start_id, *row, tokenizer.end_id] for row in filled]
    padding = [length - len(row) for row in framed]
    return [row + [tokenizer.pad_id] * size for row, size in zip(framed, padding, strict=True)], {
        "documents": len(texts),
        "words": sum(len(text.split()) for text in texts),
        "sentences": len(sentences),
        "split_sentences": sum(len(tokens) > capacity for _, tokens in sentences),
        "tokens": sum(len(tokens) for _, tokens in sentences),
        "unknown_tokens": sum(tokens.count(tokenizer.unknown_id) for _, tokens in sentences),
        "padding_tokens": sum(padding),
        "rows": len(framed),
    }
