"""The stages of a preparation: in one process, of which each leaves a result that stays."""

import contextlib
import sys
import time

import tqdm

from keras_tupe.data import file_hash, find_sources, seal
from keras_tupe.data.rows.json_record import read_sealed_json, write_sealed_json
from training.command.report import table
from training.prepare import folder as prepare_folder
from training.prepare import inspect, rows
from training.prepare.documents import (
    NUM_BUCKETS,
    PARTS,
    Problems,
    choose_num_blocks,
    is_sampled,
    part_of,
    read_documents,
)
from training.prepare.settings import fingerprint, sample_share

_MOMENT, _MINUTE = 0.1, 60  # seconds between two looks, in a terminal and without one


def prepare(settings, command):
    """Makes the folder of `settings`, or finds that it is there; returns what to print."""
    sources = find_sources(settings.input, settings.format)
    if settings.vocabulary is not None:
        rows.load_vocabulary(settings.vocabulary, settings)  # before the long work
    key = fingerprint(settings, sources)
    if prepare_folder.check_output(settings.out, key):
        prepare_folder.remove_rest(settings.out)
        return f"{settings.out} is already there, made from the same input and settings."
    progress = Progress()
    with prepare_folder.work_folder(settings.out, key) as work:
        if settings.runner:
            from training.prepare import beam

            made = beam.prepare(sources, settings, work, progress)
        else:
            made = _in_one_process(sources, settings, work, progress)
        folder, facts, tokenizer, found = made
        record = rows.finished(folder, facts, tokenizer, settings, found)
        seal(folder, {"command": command, **record, "fingerprint": key})
        prepare_folder.move_into_place(folder, settings.out)
    words = sum(one["statistics"]["words"] for part in facts.values() for one in part)
    return f"{inspect.statistics(settings.out)}\n\n{progress.profile(words)}"


def _in_one_process(sources, settings, work, progress):
    """Returns the folder, the facts of the blocks of each part, the tokenizer, and what was read.

    Each stage leaves its result in the work folder, and is skipped where that is there.
    """
    size = sum(source.num_bytes for source in sources)
    with progress.stage("read and clean", size or None, "B") as bar:
        documents = read_documents(sources, settings, work / "documents", bar)
    with progress.stage("drop duplicates", NUM_BUCKETS, " buckets") as bar:
        found = _measured(documents, settings, bar)
    Problems(settings.skip_bad, documents.problems).check_rest(found["documents"])
    with progress.stage("vocabulary", found["words"]) as bar:
        tokenizer = _tokenizer(documents, found, settings, work / "vocabulary", bar)
    # a block that was packed with another vocabulary, a damaged one say, is packed again
    digest = file_hash(settings.vocabulary or work / "vocabulary")
    folder, facts = work / "dataset", {part: [] for part in PARTS}
    folder.mkdir(exist_ok=True)
    with progress.stage("tokenize and pack", found["words"]) as bar:
        for part in PARTS:
            number = choose_num_blocks(found["bytes"][part], settings.block_bytes)
            for block in range(number):
                path = work / f"{part}-{block:08d}-{digest}.json"
                one = _facts_of(path, folder)
                if one is None:
                    texts = documents.block(part, block, number, settings.valid)
                    one = rows.write_block(folder, part, block, texts, tokenizer, settings)
                    write_sealed_json(path, one)
                facts[part].append(one)
                bar.update(one["statistics"]["words"])
    return folder, facts, tokenizer, found


def _facts_of(path, folder):
    """The facts of a block that an earlier run wrote, or `None` unless all of it is there."""
    try:
        facts = read_sealed_json(path)
        is_there = all(file_hash(folder / name) == x for name, x in facts["sha256"].items())
    except (OSError, ValueError, KeyError):
        return None
    return facts if is_there else None


def _measured(documents, settings, bar):
    """Counts what is left after exact duplicates are dropped."""
    found = {"documents": 0, "duplicates": 0, "words": 0, "train_words": 0}
    found |= {"bytes": dict.fromkeys(PARTS, 0), "problems": documents.problems}
    for bucket in range(NUM_BUCKETS):
        unique, count = documents.bucket(bucket)
        found["documents"] += len(unique)
        found["duplicates"] += count - len(unique)
        for digest, text in unique:
            part, words = part_of(digest, settings.valid), len(text.split())
            found["bytes"][part] += len(text.encode("utf-8"))
            found["words"] += words
            found["train_words"] += words if part == "train" else 0
        bar.update()
    return found


def _tokenizer(documents, found, settings, path, bar):
    """Trains the vocabulary on a sample of the training documents, or takes the user's."""
    if settings.vocabulary is not None or path.exists():
        return rows.load_vocabulary(settings.vocabulary or path, settings)
    share, counts = sample_share(found["train_words"], settings), rows.word_counts(settings)
    for bucket in range(NUM_BUCKETS):
        for digest, text in documents.bucket(bucket)[0]:
            if part_of(digest, settings.valid) == "train" and is_sampled(digest, share):
                counts.add(text)
        bar.update(found["words"] / NUM_BUCKETS)
    bar.set_postfix_str("training", refresh=sys.stderr.isatty())
    tokenizer = rows.train_vocabulary(counts.total(), settings)
    tokenizer.save(path)
    return tokenizer


class Progress:
    """A bar of `tqdm` for each stage, and where the time went."""

    def __init__(self):
        self.seconds = {}  # of each stage that has ended

    @contextlib.contextmanager
    def stage(self, name, total=None, unit=" words"):
        """Yields the bar of a stage, whose `update` takes what was done of `total` units."""
        wait = _MOMENT if sys.stderr.isatty() else _MINUTE
        options = {"mininterval": wait, "maxinterval": max(wait, 10), "delay": wait}
        start = time.monotonic()
        with tqdm.tqdm(
            desc=name, total=total, unit=unit, unit_scale=True, dynamic_ncols=True, **options
        ) as bar:
            yield bar
        self.seconds[name] = time.monotonic() - start

    def profile(self, num_words):
        """Returns a table of where the time went."""
        whole = sum(self.seconds.values())
        cells = [
            [name, f"{seconds:.1f}", f"{seconds / whole:.0%}", f"{num_words / seconds:,.0f}"]
            for name, seconds in [*self.seconds.items(), ("all", whole)]
            if seconds >= 0.05
        ]
        return table(["stage", "seconds", "share", "words per second"], cells)
