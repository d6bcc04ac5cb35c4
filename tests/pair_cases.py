"""Rows of two segments, and what must be made of documents, written a second time without it."""

import hashlib

import numpy as np

from keras_tupe import data

PAD, UNKNOWN, START, END, MASK = range(5)
IDS = {"start_id": START, "end_id": END, "pad_id": PAD}
VOCABULARY_SIZE = 10_000
MASKING = data.Masking(VOCABULARY_SIZE, MASK, PAD, special_ids=(UNKNOWN, START, END))


def drawn(limit, digest, number):
    """An integer below `limit` of the first 64 bits of a hash."""
    found = hashlib.sha256(digest + bytes(7) + bytes([number])).hexdigest()
    return int(found[:16], 16) * limit // 2**64


def expected_rows(document, length):
    """The rows of a document, token by token, and how many of its parts are left over."""
    room = length - 3
    parts = []  # (tokens, whether they begin a sentence)
    for sentence in filter(len, document):
        number = 1
        while -(-len(sentence) // number) > room // 2:
            number += 1
        rest = list(sentence)
        for part in range(number):
            size = -(-len(rest) // (number - part))
            parts.append((rest[:size], part == 0))
            rest = rest[size:]
    if sum(begins for _, begins in parts) < 2:
        return [], 0
    tokens = b"".join(int(token).to_bytes(4, "little") for part, _ in parts for token in part)
    digest = hashlib.sha256(tokens).digest()
    backward = drawn(2, digest, 0) == 1
    groups, group = [], []
    for part in reversed(parts) if backward else parts:
        if sum(len(p) for p, _ in [*group, part]) > room:
            groups.append(group)
            group = []
        group = [*group, part]
    groups.append(group)
    left = 0
    if len(groups[-1]) == 1 and len(groups[-2]) > 2:
        groups[-1].insert(0, groups[-2].pop())
    elif len(groups[-1]) == 1:
        groups.pop()
        left = 1
    if backward:
        groups = [group[::-1] for group in groups[::-1]]
    rows = []
    for number, group in enumerate(groups, 1):
        cuts = [index for index, (_, begins) in enumerate(group) if begins and index]
        cuts = cuts or list(range(1, len(group)))
        cut = cuts[drawn(len(cuts), digest, number)]
        first, second = ([t for p, _ in half for t in p] for half in (group[:cut], group[cut:]))
        row = [START, *first, END, *second, END]
        rows.append(row + [PAD] * (length - len(row)))
    return rows, left


class Pairs:
    """Rows of pairs in memory, with the documents that they are of."""

    def __init__(self, token_ids, documents):
        self.token_ids = np.asarray(token_ids, "int32")
        self.length = self.token_ids.shape[1]
        ends = [np.flatnonzero(row == END) for row in self.token_ids]
        self.first_sizes = np.array([first - 1 for first, _ in ends])
        self.second_sizes = np.array([last - first - 1 for first, last in ends])
        self.documents = np.asarray(documents)
        self.partners = data.Partners(self.second_sizes, self.documents)

    def __len__(self):
        return len(self.token_ids)

    def __getitem__(self, numbers):
        return self.token_ids[numbers]


def random_pairs(number=60, length=16, per_document=3, seed=0):
    """Rows of random tokens, each id once (of 9,995), with segments of 1 to 6 tokens."""
    random = np.random.default_rng(seed)
    ids = iter(range(5, VOCABULARY_SIZE))
    rows = np.full((number, length), PAD)
    for row in rows:
        first, second = ([next(ids) for _ in range(size)] for size in random.integers(1, 7, 2))
        text = [START, *first, END, *second, END]
        row[: len(text)] = text
    return Pairs(rows, np.arange(number) // per_document)


def segments(row):
    """The tokens of the two segments of a row, as lists."""
    row = list(row)
    middle = row.index(END)
    return row[1:middle], row[middle + 1 : row.index(END, middle + 1)]
