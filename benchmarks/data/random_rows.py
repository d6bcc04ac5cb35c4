"""A directory of random rows, for machines without prepared text."""

import numpy as np

from keras_tupe.data import file_hash, seal, write_shard

LENGTH = 512
VOCABULARY_SIZE = 30_522  # as many as BERT's
_SPECIAL = {"pad_id": 0, "unknown_id": 1, "start_id": 2, "end_id": 3, "mask_id": 4}
_ROWS_PER_SHARD = 2**13
_CONTINUES = 5  # every fifth piece goes on with a word, as in BERT's vocabulary


def write_random_rows(folder, num_rows):
    """Writes `num_rows` rows of 512 random pieces.

    Args:
        folder: `pathlib.Path`, made.
        num_rows: number of rows of the split `train`.
    """
    folder.mkdir()
    marks = ("##" if index % _CONTINUES == 0 else "" for index in range(5, VOCABULARY_SIZE))
    words = [f"{mark}w{index}" for index, mark in enumerate(marks)]
    file = folder / "vocabulary.txt"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    file.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    shape = (num_rows, LENGTH)
    token_ids = np.random.default_rng(0).integers(5, VOCABULARY_SIZE, shape, "int32")
    token_ids[:, 0], token_ids[:, -1] = _SPECIAL["start_id"], _SPECIAL["end_id"]
    for number, first in enumerate(range(0, num_rows, _ROWS_PER_SHARD)):
        shard = token_ids[first : first + _ROWS_PER_SHARD]
        write_shard(folder, "train", number, shard, VOCABULARY_SIZE)
    vocabulary = {
        "kind": "wordpiece",
        "file": file.name,
        "sha256": file_hash(file),
        "size": VOCABULARY_SIZE,
        "lowercase": True,
        **_SPECIAL,
        "special_ids": sorted(_SPECIAL.values()),
    }
    splits = {"train": {"rows": num_rows}}
    seal(folder, {"length": LENGTH, "vocabulary": vocabulary, "splits": splits})
