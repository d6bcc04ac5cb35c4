"""Steps of Beam's workers; each calls the functions that one process calls."""

import json

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from keras_tupe.data import (
    block_number,
    clean_text,
    document_digest,
    is_held_out,
    is_sampled,
    read_source,
)
from training.prepare import vocabulary as prepare_vocabulary
from training.prepare.blocks import block_facts, pack_block
from training.prepare.problems import blank
from training.prepare.settings import sample_share

_KEYS_PER_BLOCK = 2**32  # more than a block has rows
_NO_SIZES = dict.fromkeys(
    ("read", "train_documents", "train_bytes", "train_words", "valid_documents", "valid_bytes"), 0
)


def read_unique(pipeline, sources, settings):
    """Reads and cleans all sources, and drops exact duplicates.

    Returns:
        Two collections: `(digest, (text, times it was read))`, and problems as JSON strings.
    """
    read = (
        pipeline
        | "sources" >> beam.Create(sources)
        | "spread" >> beam.Reshuffle()
        | "read" >> beam.ParDo(ReadSource(settings)).with_outputs("problems", main="documents")
    )
    unique = read.documents | "drop duplicates" >> beam.CombinePerKey(_one_of_equals)
    return unique, read.problems


class ReadSource(beam.DoFn):
    """A `Source` to `(digest, (text, 1))` for each document, problems apart."""

    def __init__(self, settings):
        self._settings = settings

    def process(self, source):
        """Yields documents and problems."""
        settings = self._settings
        for document in read_source(source, settings.text_field, settings.max_document_bytes):
            text = "" if document.problem else clean_text(document.text)
            if text:
                yield document_digest(text), (text, 1)
            else:
                message = document.message or blank(document)
                yield beam.pvalue.TaggedOutput("problems", json.dumps(message))


def measure(item, held_out):
    """The sizes of one unique document, to be added up (`add_sizes`)."""
    digest, (text, times) = item
    part = "valid" if is_held_out(digest, held_out) else "train"
    measured = {"read": times, f"{part}_documents": 1, f"{part}_bytes": len(text.encode("utf-8"))}
    if part == "train":
        measured["train_words"] = len(text.split())
    return {**_NO_SIZES, **measured}


def add_sizes(items):
    """The sum of several dictionaries of sizes."""
    total = dict(_NO_SIZES)
    for item in items:
        for name, value in item.items():
            total[name] += value
    return total


def by_block(item, part, num_blocks, held_out):
    """Yields `(block, (digest, text))` if a document belongs to the part."""
    digest, (text, _) = item
    if is_held_out(digest, held_out) == (part == "valid"):
        yield block_number(digest, num_blocks), (digest, text)


class SampledWordCounts(beam.DoFn):
    """Unique documents to `(word, count)`, added up per bundle."""

    def __init__(self, settings):
        self._settings = settings

    def start_bundle(self):
        """Starts to count."""
        self._counts = prepare_vocabulary.word_counts(self._settings)

    def process(self, item, totals):
        """Counts the words of a document of the training part, if it is in the sample."""
        digest, (text, _) = item
        share = sample_share(totals["train_words"], self._settings)
        if not is_held_out(digest, self._settings.valid) and is_sampled(digest, share):
            self._counts.add(text)

    def finish_bundle(self):
        """Yields the counts."""
        window = GlobalWindow()
        for item in self._counts.total().items():
            yield WindowedValue(item, window.max_timestamp(), [window])


class PackBlocks(beam.DoFn):
    """`(block, [(digest, text), ...])` to rows with their keys, and the facts of the block."""

    def __init__(self, vocabulary, settings):
        self._vocabulary, self._settings = vocabulary, settings

    def setup(self):
        """Loads the tokenizer, once per worker."""
        self._tokenizer = prepare_vocabulary.from_bytes(self._vocabulary, self._settings)

    def process(self, item):
        """Yields `(key, example)`, where keys grow in the order of the rows, and, apart, JSON."""
        block, documents = item
        documents = sorted(documents)
        texts = [text for _, text in documents]
        settings = self._settings
        found = pack_block(texts, self._tokenizer, settings.length, settings.pairs)
        for number, row in enumerate(found[0]):
            yield block * _KEYS_PER_BLOCK + number, {"token_ids": row}
        facts = block_facts(*found, [digest for digest, _ in documents])
        yield beam.pvalue.TaggedOutput("facts", json.dumps({"block": block, **facts}))


def _one_of_equals(items):
    """`(text, times)` of one digest: the text, and how often it was read in all."""
    text, times = "", 0
    for text, more in items:  # noqa: B007
        times += more
    return text, times
