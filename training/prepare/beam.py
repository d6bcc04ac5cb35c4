"""The preparation on Apache Beam: the same transforms, on as many workers as there are.

Two pipelines. The first reads, drops duplicates, and adds up sizes and word counts; then the
vocabulary is trained, here; the second reads again, groups documents into blocks and packs each
block, whose shard its worker writes into the work folder, which all workers share. Rows and their
order depend on the documents alone, so they are those of one process.
"""

import functools
import json
import pathlib
import secrets
import shutil

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, TypeOptions

from keras_tupe.data.corpus.documents import document_digest
from keras_tupe.data.rows.json_record import read_sealed_json, write_sealed_json
from training.command.processes import safe_environment
from training.prepare import rows
from training.prepare.documents import (
    PARTS,
    Problems,
    block_number,
    choose_num_blocks,
    cleaned,
    is_sampled,
    part_of,
    refused_if_damaged,
)
from training.prepare.settings import sample_share

_SIZES = ("read", *(f"{part}_{what}" for part in PARTS for what in ("documents", "bytes", "words")))


def prepare(sources, settings, work, progress):
    """As `_in_one_process` of `training.prepare.stages`, on the Beam runner of the settings.

    All problems of the input are found before the first is reported.
    """
    with safe_environment():
        found, tokenizer = _count(sources, settings, work, progress)
        folder = _fresh(work, "dataset")
        with progress.stage("read, group, pack, write"):
            facts = _pack_all(sources, settings, found, tokenizer, folder, work)
    return folder, facts, tokenizer, found


def _count(sources, settings, work, progress):
    """Runs the first pipeline, unless an earlier run did, and trains the vocabulary."""
    done, vocabulary = work / "plan.json", settings.vocabulary or work / "vocabulary"
    if not done.exists():
        folder = _fresh(work, "plan")
        with (
            progress.stage("read, count words"),
            beam.Pipeline(settings.runner, options=_options(settings)) as pipeline,
        ):
            documents, problems = _unique(pipeline, sources, settings)
            measured = documents | "measure" >> beam.Map(_measure, settings.valid)
            totals = measured | "add sizes" >> beam.CombineGlobally(_add_sizes)
            results = {"problems": problems, "totals": totals | "as JSON" >> beam.Map(json.dumps)}
            if settings.vocabulary is None:
                words = documents | "count words" >> beam.FlatMap(
                    _sampled_words, settings, beam.pvalue.AsSingleton(totals)
                )
                merged = words | "add word counts" >> beam.CombinePerKey(sum)
                results["words"] = merged | "words as JSON" >> beam.Map(json.dumps)
            for name, lines in results.items():
                _ = lines | f"write {name}" >> beam.io.WriteToText(str(folder / name))
        problems = Problems(settings.skip_bad)
        for message in sorted(_lines(folder, "problems")):
            problems.add(message)
        (total,) = _lines(folder, "totals")
        unique = sum(total[f"{part}_documents"] for part in PARTS)
        problems.check_rest(unique)
        if settings.vocabulary is None:
            with progress.stage("vocabulary"):
                counts = dict(_lines(folder, "words"))
                rows.train_vocabulary(counts, settings).save(vocabulary)
        found = {
            "documents": unique,
            "duplicates": total["read"] - unique,
            "bytes": {part: total[f"{part}_bytes"] for part in PARTS},
            "problems": problems.state,
        }
        write_sealed_json(done, found)
        shutil.rmtree(folder)
    with refused_if_damaged(done):
        found = read_sealed_json(done)
    return found, rows.load_vocabulary(vocabulary, settings)


def _pack_all(sources, settings, found, tokenizer, folder, work):
    """Runs the second pipeline; returns the facts of the blocks of each part."""
    told = _fresh(work, "facts")
    tokenizer.save(told / "vocabulary")
    content = (told / "vocabulary").read_bytes()
    with beam.Pipeline(settings.runner, options=_options(settings)) as pipeline:
        documents, _ = _unique(pipeline, sources, settings)
        for part in PARTS:
            number = choose_num_blocks(found["bytes"][part], settings.block_bytes)
            _ = (
                documents
                | f"{part}: place" >> beam.FlatMap(_by_block, part, number, settings.valid)
                | f"{part}: group" >> beam.GroupByKey()
                | f"{part}: pack" >> beam.Map(_pack, content, settings, str(folder), part)
                | f"{part}: facts" >> beam.io.WriteToText(str(told / part))
            )
    return {part: sorted(_lines(told, part), key=lambda one: one["block"]) for part in PARTS}


def _unique(pipeline, sources, settings):
    """Reads and cleans all sources, and drops exact duplicates.

    Returns two collections: `(digest, (text, times it was read))`, and problems as JSON strings.
    """
    read = (
        pipeline
        | "sources" >> beam.Create(sources)
        | "spread" >> beam.Reshuffle()
        | "read" >> beam.FlatMap(_read, settings).with_outputs("problems", main="documents")
    )
    return read.documents | "drop duplicates" >> beam.CombinePerKey(_one_of_equals), read.problems


def _read(source, settings):
    """Yields `(digest, (text, 1))` for each document of a source, problems apart."""
    for text, problem in cleaned(source, settings):
        if problem:
            yield beam.pvalue.TaggedOutput("problems", json.dumps(problem))
        else:
            yield document_digest(text), (text, 1)


def _sampled_words(item, settings, totals):
    """Yields `(word, count)` of a unique document, if it is sampled for the vocabulary."""
    digest, (text, _) = item
    share = sample_share(totals["train_words"], settings)
    if part_of(digest, settings.valid) == "train" and is_sampled(digest, share):
        counts = rows.word_counts(settings)
        counts.add(text)
        yield from counts.total().items()


def _pack(item, vocabulary, settings, folder, part):
    """`(block, [(digest, text), ...])` to a shard in the folder, and the facts of it as JSON."""
    block, documents = item
    tokenizer = rows.vocabulary_of_bytes(vocabulary, settings)
    where = pathlib.Path(folder), part, block
    return json.dumps(rows.write_block(*where, sorted(documents), tokenizer, settings))


def _measure(item, held_out):
    """The sizes of one unique document, to be added up."""
    digest, (text, times) = item
    sizes = {"documents": 1, "bytes": len(text.encode("utf-8")), "words": len(text.split())}
    part = part_of(digest, held_out)
    return {"read": times, **{f"{part}_{what}": size for what, size in sizes.items()}}


def _add_sizes(items):
    items = list(items)
    return {name: sum(item.get(name, 0) for item in items) for name in _SIZES}


def _one_of_equals(items):
    """`(text, times)` of one digest: the text, and how often it was read in all."""
    return functools.reduce(lambda found, item: (item[0], found[1] + item[1]), items, ("", 0))


def _by_block(item, part, num_blocks, held_out):
    """Yields `(block, (digest, text))` if a document belongs to the part."""
    digest, (text, _) = item
    if part_of(digest, held_out) == part:
        yield block_number(digest, num_blocks), (digest, text)


def _fresh(work, name):
    """A new folder in place of those of earlier runs, whose workers may write to theirs still."""
    for old in work.glob(f"{name}-*"):
        shutil.rmtree(old, ignore_errors=True)
    folder = work / f"{name}-{secrets.token_hex(8)}"
    folder.mkdir()
    return folder


def _options(settings):
    options = PipelineOptions(settings.beam_options.split())
    # what Beam infers of outputs with tags is wrong
    options.view_as(TypeOptions).pipeline_type_check = False
    return options


def _lines(folder, prefix):
    """The lines of all files that a WriteToText wrote, parsed."""
    for file in sorted(folder.glob(f"{prefix}-*")):
        yield from map(json.loads, file.read_text("utf-8").splitlines())
