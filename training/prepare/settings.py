"""The settings of `training.prepare`, and which of them make another data set."""

import dataclasses
import os

from training.command.settings import setting
from training.command.without_keras import without_keras

with without_keras():
    from keras_tupe.data.corpus.sources import FORMATS, MAX_DOCUMENT_BYTES
    from keras_tupe.data.rows.pairs import KINDS

TOKENIZERS = {"wordpiece": 30522, "sentencepiece": 32768}  # with the usual vocabulary size
RUNNERS = ("DirectRunner", "FlinkRunner", "SparkRunner", "DataflowRunner")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.prepare`."""

    input: tuple = setting(
        (),
        "Files, folders, globs in quotes, or tfds:NAME or tfds:NAME:SPLIT (TFDS_DATA_DIR names "
        "TFDS's folder). Text files (blank line between documents), JSON lines, WikiExtractor's "
        "folders; also .gz, .xz, .zst, .bz2.",
    )
    out: str | None = setting(None, "Folder to make.")
    describe: str | None = setting(
        None, "Instead of preparing: print statistics and some rows of this prepared folder."
    )
    verify: str | None = setting(
        None, "Instead of preparing: check every file of this prepared folder against its hash."
    )
    format: str = setting("auto", f"Format of the files: {', '.join(FORMATS)}.")
    text_field: str = setting("text", "Field of JSON lines or TFDS examples that holds the text.")
    tokenizer: str = setting("wordpiece", f"Kind of vocabulary: {', '.join(TOKENIZERS)}.")
    vocabulary: str | None = setting(
        None, "Existing vocabulary (.txt or SentencePiece model) to use instead of training one."
    )
    vocabulary_size: int | None = setting(
        None, "Pieces to train, >= 100. Default: 30522 for wordpiece, 32768 for sentencepiece."
    )
    vocabulary_words: int = setting(
        100_000_000, "Words to train the vocabulary on, >= 1: a sample of documents, by hash."
    )
    lowercase: bool = setting(True, "Whether the tokenizer drops case (and WordPiece accents).")
    length: int = setting(512, "Tokens per row, >= 3, special ones included.")
    pairs: str | None = setting(
        None,
        "Rows of two segments, [CLS] A [SEP] B [SEP], where B follows A in a document: `order` for "
        "the objective sentence_order, `next` for that and next_sentence. Documents of one "
        "sentence are left out.",
    )
    valid: float = setting(0.01, "Share of the documents that is held out, 0 to below 1.")
    skip_bad: bool = setting(
        False, "Whether bad documents are counted and listed, instead of ending the work."
    )
    max_document_bytes: int = setting(MAX_DOCUMENT_BYTES, "Larger documents are bad; bytes, >= 1.")
    block_bytes: int = setting(2**24, "Text of a shard, bytes of UTF-8, >= 1.")
    runner: str | None = setting(
        None, f"Prepare with Apache Beam (extra [beam]) on: {', '.join(RUNNERS)}."
    )
    beam_options: str = setting("", "Options for the runner, as '--name=value --name=value'.")

    def problems(self):
        """Returns a sentence for each mistake."""
        tasks = [self.describe, self.verify, self.out]
        if sum(task is not None for task in tasks) != 1:
            return [
                "one of --out (with --input), --describe and --verify must be given. Received: "
                f"out={self.out!r}, describe={self.describe!r}, verify={self.verify!r}"
            ]
        if self.out is None:
            return []
        found = []
        if not self.input:
            found.append("--input must name at least one source of text. Received: none")
        out = os.path.realpath(self.out)
        for folder in filter(os.path.isdir, self.input):
            if os.path.commonpath([out, os.path.realpath(folder)]) == os.path.realpath(folder):
                found.append(
                    "--out must not be inside of an input folder, where it would be read as text. "
                    f"Received: out={self.out!r}, input={folder!r}"
                )
        for name, allowed in {
            "format": FORMATS,
            "tokenizer": tuple(TOKENIZERS),
            "pairs": (None, *KINDS),
            "runner": (None, *RUNNERS),
        }.items():
            if getattr(self, name) not in allowed:
                names = [value for value in allowed if value is not None]
                found.append(f"--{name} must be one of {names}. Received: {getattr(self, name)!r}")
        if self.length < 3:
            found.append(f"--length must be at least 3. Received: {self.length}")
        if self.pairs in KINDS and self.length < 5:
            found.append(f"--length must be at least 5 with --pairs. Received: {self.length}")
        if not 0 <= self.valid < 1:
            found.append(f"--valid must be a share, from 0 to below 1. Received: {self.valid}")
        if self.vocabulary_size is not None and self.vocabulary_size < 100:
            found.append(
                f"--vocabulary-size must be at least 100. Received: {self.vocabulary_size}"
            )
        if self.vocabulary_size is not None and self.vocabulary is not None:
            found.append("--vocabulary-size is of no use with --vocabulary: leave one of them out.")
        for name in ("vocabulary_words", "max_document_bytes", "block_bytes"):
            if getattr(self, name) < 1:
                option = "--" + name.replace("_", "-")
                found.append(f"{option} must be at least 1. Received: {getattr(self, name)}")
        return found


# These change where and how the work is done, not what comes out.
_NO_MATTER = {"input", "out", "describe", "verify", "runner", "beam_options"}


def fingerprint(settings, sources):
    """What must be equal for two runs to make the same data set, as a JSON dictionary.

    Args:
        settings: a `Settings`.
        sources: list of `Source`. A file counts as unchanged if its size and time are.
    """
    from keras_tupe.data import file_hash

    values = dataclasses.asdict(settings)
    chosen = {name: values[name] for name in values if name not in _NO_MATTER}
    chosen["vocabulary_size"] = vocabulary_size(settings)
    if settings.vocabulary is not None:
        chosen["vocabulary"] = file_hash(settings.vocabulary)
    files = [
        [os.path.abspath(source.name), source.num_bytes, source.version]
        if source.format != "tfds"
        else [source.name, 0, 0]
        for source in sources
    ]
    return {**chosen, "input": files}


def vocabulary_size(settings):
    """Pieces to train, or `None` if the vocabulary is given."""
    if settings.vocabulary is not None:
        return None
    return settings.vocabulary_size or TOKENIZERS[settings.tokenizer]


def sample_share(train_words, settings):
    """The share of the training documents that the vocabulary is trained on."""
    return min(1.0, settings.vocabulary_words / max(train_words, 1))


def difference(ours, theirs):
    """Says in which settings two fingerprints differ, as a phrase."""
    names = [name for name in ours if ours[name] != theirs.get(name)]
    parts = [
        "the input files (or their times of change)"
        if name == "input"
        else f"{name} {theirs.get(name)!r} there, {ours[name]!r} here"
        for name in names
    ]
    return "; ".join(parts)
