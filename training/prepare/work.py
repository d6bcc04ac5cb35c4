"""The rows of a command line, made or gone on with, in one process."""

import sys

from keras_tupe.data import file_hash, find_sources, seal
from keras_tupe.data.rows.json_record import write_sealed_json
from training.prepare import blocks, finish, inspect, vocabulary
from training.prepare import folder as prepare_folder
from training.prepare.documents import (
    NUM_BUCKETS,
    PARTS,
    Problems,
    choose_num_blocks,
    is_sampled,
    part_of,
    read_documents,
)
from training.prepare.progress import Progress
from training.prepare.settings import fingerprint, sample_share


def prepare(settings, command):
    """Makes the folder of `settings`, or finds that it is there; returns what to print."""
    sources = find_sources(settings.input, settings.format)
    if settings.vocabulary is not None:
        vocabulary.load(settings.vocabulary, settings)  # before the long work
    key = fingerprint(settings, sources)
    if prepare_folder.check_output(settings.out, key):
        prepare_folder.remove_rest(settings.out)
        return f"{settings.out} is already there, made from the same input and settings."
    progress, made = Progress(), _on_beam if settings.runner else _in_one_process
    with prepare_folder.work_folder(settings.out, key) as work:
        folder, facts, tokenizer, found = made(sources, settings, work, progress)
        parts = {part: finish.total(facts[part], settings.pairs) for part in PARTS}
        statistics = {part: one["statistics"] for part, one in parts.items()}
        finish.check_complete(statistics, found["documents"])
        finish.check_size(statistics, settings)
        record = finish.record(folder, tokenizer, settings, parts, found)
        seal(folder, {"command": command, **record, "fingerprint": key})
        prepare_folder.move_into_place(folder, settings.out)
    words = sum(part["words"] for part in statistics.values())
    return f"{inspect.statistics(settings.out)}\n\n{progress.profile(words)}"


def _on_beam(*args):
    from training.prepare import beam

    return beam.prepare(*args)


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
                one = blocks.read_facts(path, folder)
                if one is None:
                    texts = documents.block(part, block, number, settings.valid)
                    one = blocks.write_block(folder, part, block, texts, tokenizer, settings)
                    write_sealed_json(path, one)
                facts[part].append(one)
                bar.update(one["statistics"]["words"])
    blocks.remove_others(folder, facts)
    return folder, facts, tokenizer, found


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
    if settings.vocabulary is not None:
        return vocabulary.load(settings.vocabulary, settings)
    if path.exists():
        return vocabulary.load(path, settings)
    share, counts = sample_share(found["train_words"], settings), vocabulary.word_counts(settings)
    for bucket in range(NUM_BUCKETS):
        for digest, text in documents.bucket(bucket)[0]:
            if part_of(digest, settings.valid) == "train" and is_sampled(digest, share):
                counts.add(text)
        bar.update(found["words"] / NUM_BUCKETS)
    bar.set_postfix_str("training", refresh=sys.stderr.isatty())
    tokenizer = vocabulary.train(counts.total(), settings)
    tokenizer.save(path)
    return tokenizer
