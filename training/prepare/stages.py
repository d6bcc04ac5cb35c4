"""The stages of a preparation in one process; each leaves its result in the work folder."""

import io
import pathlib

import numpy as np

from keras_tupe._array_file import read_npy
from keras_tupe.data import (
    block_number,
    choose_num_blocks,
    clean_text,
    is_held_out,
    is_sampled,
    read_sealed_json,
    read_source,
    write_sealed_json,
)
from training.prepare import vocabulary
from training.prepare.blocks import block_facts, pack_block
from training.prepare.problems import Problems, blank
from training.prepare.settings import sample_share
from training.prepare.spill import NUM_BUCKETS, digests, refused_if_damaged

PARTS = ("train", "valid")


def read(sources, spill, settings, bar):
    """Reads and cleans all documents into the spill.

    Args:
        sources: list of `Source`.
        spill: a `Spill`; what it holds already is not read again.
        settings: a `Settings`.
        bar: function of `(num_bytes, num_documents, num_words)` read since it was last called.

    Raises:
        ValueError: at the first problem, unless problems are skipped.
    """
    if spill.is_complete:
        return
    problems = Problems(settings.skip_bad, spill.state.get("problems", {}))
    state = {"sources": 0, **spill.state}
    for number, source in enumerate(sources[state["sources"] :], start=state["sources"] + 1):
        documents = read_source(
            source,
            settings.text_field,
            settings.max_document_bytes,
            advance=lambda num_bytes: bar(num_bytes, 0, 0),
        )
        for document in documents:
            text = "" if document.problem else clean_text(document.text)
            if text:
                bar(0, 1, spill.add(text))
            else:
                problems.add(document.message or blank(document))
        state = {"sources": number, "problems": problems.state}
        spill.commit(state)
    spill.commit(state, complete=True)


def choose_blocks(spill, settings):
    """Counts what is left after exact duplicates are dropped, and chooses the number of blocks.

    Returns:
        Dictionary of `documents` left, `duplicates`, `words`, `train_words`, and `num_blocks` per
        part.
    """
    num_bytes, num_words = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
    documents = duplicates = 0
    for bucket in range(NUM_BUCKETS):
        entries, repeated = spill.index(bucket, bucket + 1)
        documents += len(entries)
        duplicates += repeated
        held_out = np.array([is_held_out(key, settings.valid) for key in digests(entries)], bool)
        for part, chosen in (("train", ~held_out), ("valid", held_out)):
            num_bytes[part] += int(entries["size"][chosen].sum())
            num_words[part] += int(entries["words"][chosen].sum())
    blocks = {part: choose_num_blocks(num_bytes[part], settings.block_bytes) for part in PARTS}
    return {
        "documents": documents,
        "duplicates": duplicates,
        "words": sum(num_words.values()),
        "train_words": num_words["train"],
        "num_blocks": blocks,
    }


def make_vocabulary(spill, plan, settings, work, bar):
    """Trains the vocabulary on a sample of the training documents, or takes the user's.

    Args:
        spill: a complete `Spill`.
        plan: what `choose_blocks` returned.
        settings: a `Settings`.
        work: folder that keeps the vocabulary, `pathlib.Path`.
        bar: function that wraps the numbers of the buckets.

    Returns:
        The tokenizer.
    """
    if settings.vocabulary is not None:
        return vocabulary.load(settings.vocabulary, settings)
    path = work / "vocabulary"
    if path.exists():
        return vocabulary.load(path, settings)
    share = sample_share(plan["train_words"], settings)
    counts = vocabulary.word_counts(settings)
    for bucket in bar(range(NUM_BUCKETS)):
        entries, _ = spill.index(bucket, bucket + 1)
        keys = digests(entries)
        chosen = [not is_held_out(key, settings.valid) and is_sampled(key, share) for key in keys]
        for document in spill.documents(entries[np.array(chosen, bool)]):
            counts.add(document)
    tokenizer = vocabulary.train(counts.total(), settings)
    tokenizer.save(path)
    return tokenizer


def pack(spill, plan, tokenizer, settings, work, bar):
    """Packs each block of each part, and keeps the rows.

    Args:
        spill, plan, settings, work: as in `make_vocabulary`.
        tokenizer: the tokenizer.
        bar: function of `(blocks, words)` packed since it was last called.

    Returns:
        Dictionary of part -> list of `PackedBlock`, in the order of the blocks.
    """
    folder = work / "rows"
    folder.mkdir(exist_ok=True)
    return {
        part: [
            _packed(spill, part, block, plan, tokenizer, settings, folder, bar)
            for block in range(plan["num_blocks"][part])
        ]
        for part in PARTS
    }


class PackedBlock:
    """The rows of one block on disk.

    Attributes:
        facts: what `block_facts` returned.

    Raises:
        ValueError: if the facts on disk are not what was written.
    """

    def __init__(self, path):
        self._path = pathlib.Path(path)
        self._facts = self._path.with_suffix(".json")
        self.is_there = self._path.exists()
        self.facts = None
        if self.is_there:
            with refused_if_damaged(self._facts):
                self.facts = read_sealed_json(self._facts)

    def save(self, rows, facts):
        """Keeps rows and facts; they are there both or not at all."""
        write_sealed_json(self._facts, facts)
        temporary = self._path.with_suffix(".unfinished")
        content = io.BytesIO()  # straight to a file, NumPy would not say that the disk is full
        np.save(content, rows)
        temporary.write_bytes(content.getbuffer())
        temporary.replace(self._path)
        self.facts, self.is_there = facts, True

    def rows(self):
        """Reads the rows, int32 `(rows, length)`.

        Raises:
            ValueError: if the file is not one of rows.
        """
        with refused_if_damaged(self._path):
            rows = read_npy(self._path)
            if rows.dtype != "int32" or rows.ndim != 2:
                raise ValueError("it holds no rows")
        return rows


def _packed(spill, part, block, plan, tokenizer, settings, folder, bar):
    packed = PackedBlock(folder / f"{part}-{block:08d}.npy")
    if not packed.is_there:
        entries = _entries(spill, part, block, plan["num_blocks"][part], settings)
        words, texts = int(entries["words"].sum()), list(spill.documents(entries))
        shown = 0.0

        def advance(share):
            nonlocal shown
            bar(0, words * share - shown)
            shown = words * share

        found = pack_block(texts, tokenizer, settings.length, settings.pairs, advance)
        packed.save(found[0], block_facts(*found, digests(entries)))
        bar(1, words - shown)
    else:
        bar(1, packed.facts["statistics"]["words"])
    return packed


def _entries(spill, part, block, num_blocks, settings):
    """The index entries of the documents of one block of one part, sorted by hash."""
    first = block * NUM_BUCKETS // num_blocks
    end = max((block + 1) * NUM_BUCKETS // num_blocks, first + 1)
    entries, _ = spill.index(first, end)
    wanted = part == "valid"
    chosen = [
        is_held_out(key, settings.valid) == wanted and block_number(key, num_blocks) == block
        for key in digests(entries)
    ]
    return entries[np.array(chosen, bool)]
