"""The plan of a preparation: what its stages take, and what moves its bar."""

from training.command.stages import Stages
from training.command.tables import table

START, READ, DEDUPLICATE, VOCABULARY = "start", "read and clean", "drop duplicates", "vocabulary"
PACK, WRITE = "tokenize and pack", "write and check"
FIRST, SECOND = "read, count words", "read, group, pack, write"  # pipelines of Beam

# Seconds on two CPU cores, from `python -m benchmarks.prepare`; corrected as the work goes on.
_START, _UNKNOWN = 12.0, 30.0
_READ, _DEDUPLICATE = 0.06, 0.005  # per megabyte of text
_COUNT, _TRAIN = 0.64, 5.0  # the vocabulary: per million words, and its training
_PACK, _WRITE = 0.53, 0.16  # per million words
_BEAM = 4.0  # Beam's time by that of one process
_PACKED = 3.5  # megabytes of text in one that is compressed
_COMPRESSED = (".gz", ".xz", ".zst", ".bz2")
_MEGABYTES_OF_WORDS = 6.0  # text with a million words
_WRITTEN = 0.6  # of writing and reading back


class Plan(Stages):
    """The `Stages` of a preparation, in one process or on Beam.

    Args:
        **kwargs: as for `Stages`.
    """

    def __init__(self, **kwargs):
        super().__init__("prepare", **kwargs)
        self.expect(START, _START)
        self.expect(READ, _UNKNOWN)  # until the files are known
        self.begin(START)

    def expect_text(self, sources, settings):
        """Adds all other stages, by the size of the files.

        Args:
            sources: list of `Source`.
            settings: a `Settings` of `training.prepare`.
        """
        megabytes = sum(
            source.num_bytes * (_PACKED if source.name.endswith(_COMPRESSED) else 1) / 1e6
            for source in sources
        )
        self.expect(READ, _READ * megabytes)
        self.expect(DEDUPLICATE, _DEDUPLICATE * megabytes)
        self.expect_words(1e6 * megabytes / _MEGABYTES_OF_WORDS, settings)

    def expect_words(self, num_words, settings):
        """Adds the stages that depend on the number of words, or corrects them."""
        millions = num_words / 1e6
        sampled = min(millions, settings.vocabulary_words / 1e6)
        trained = settings.vocabulary is None
        self._counting = _COUNT * sampled / (_COUNT * sampled + _TRAIN)
        self.expect(VOCABULARY, _COUNT * sampled + _TRAIN if trained else 1.0)
        self.expect(PACK, _PACK * millions)
        self.expect(WRITE, _WRITE * millions + 1.0)

    def expect_pipelines(self, sources, settings):
        """Adds the stages of a preparation on Beam, which tells nothing while a pipeline runs."""
        self.expect_text(sources, settings)
        seconds = {name: self.drop(name) for name in (READ, DEDUPLICATE, PACK)}
        vocabulary, write = map(self.drop, (VOCABULARY, WRITE))
        read = seconds[READ] + seconds[DEDUPLICATE]
        self.expect(FIRST, _BEAM * (read + self._counting * vocabulary), "pipeline")
        self.expect(VOCABULARY, (1 - self._counting) * vocabulary)
        self.expect(SECOND, _BEAM * (read + seconds[PACK] + write), "pipeline")
        self.expect(WRITE, (1 - _WRITTEN) * write)

    def reading(self, sources):
        """Returns what `stages.read` calls with bytes, documents and words that were read."""
        size = sum(source.num_bytes for source in sources)
        documents = done = words = 0

        def advance(num_bytes, num_documents, num_words):
            nonlocal documents, done, words
            done, documents, words = done + num_bytes, documents + num_documents, words + num_words
            if size and num_bytes:
                self.at(done / size, f"{documents:,} documents, {words:,} words")

        return advance

    def counting(self, buckets):
        """Yields the buckets whose words are counted for the vocabulary."""
        for number in buckets:
            self.at(self._counting * number / len(buckets), "counting words")
            yield number
        self.at(self._counting, "training")

    def packing(self, num_words):
        """Returns what `stages.pack` calls with blocks and words that were packed."""
        words = 0

        def advance(num_blocks, more):
            nonlocal words
            words += more
            self.at(words / max(num_words, 1), f"{words:,.0f} words")

        return advance

    def writing(self, num_blocks):
        """Returns what wraps the blocks of each part while they are written."""
        done = 0

        def blocks(items):
            nonlocal done
            for item in items:
                self.at(_WRITTEN * done / num_blocks)
                yield item
                done += 1
            self.at(_WRITTEN * done / num_blocks, "reading back")

        return blocks

    def profile(self, num_words):
        """Returns a table of where the time went."""
        seconds = {name: found for name, found in self.seconds.items() if name != START}
        whole = sum(seconds.values())
        rows = [
            [name, f"{seconds:.1f}", f"{seconds / whole:.0%}", f"{num_words / seconds:,.0f}"]
            for name, seconds in [*seconds.items(), ("all", whole)]
            if seconds >= 0.05
        ]
        return table(["stage", "seconds", "share", "words per second"], rows)
