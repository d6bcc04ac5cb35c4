"""The preparation on Apache Beam: the same transforms, on as many workers as there are.

Two pipelines. The first reads, drops duplicates, and adds up sizes and word counts; then the
vocabulary is trained, here; the second reads again, groups documents into blocks and packs each
block, written through TFDS, sorted by block and by row of the block. Rows and their order depend on
the documents alone, so they are those of one process.
"""

import json
import pathlib
import secrets
import shutil

import apache_beam as beam
import tensorflow_datasets as tfds
from apache_beam.options.pipeline_options import PipelineOptions, TypeOptions

from keras_tupe.data import (
    choose_num_blocks,
    find_sources,
    read_sealed_json,
    rows_info,
    write_sealed_json,
)
from training.command.start import safe_environment
from training.prepare import (
    finish,
    inspect,
)
from training.prepare import (
    folder as prepare_folder,
)
from training.prepare import (
    vocabulary as prepare_vocabulary,
)
from training.prepare.beam_steps import (
    PackBlocks,
    SampledWordCounts,
    add_sizes,
    by_block,
    measure,
    read_unique,
)
from training.prepare.plan import FIRST, SECOND, VOCABULARY, WRITE
from training.prepare.problems import Problems
from training.prepare.settings import fingerprint
from training.prepare.spill import refused_if_damaged
from training.prepare.stages import PARTS


class PackedRows(tfds.core.GeneratorBasedBuilder):
    """TFDS's builder of the data set; it writes what the second pipeline packs.

    Args:
        recipe: dictionary of `sources`, `settings`, `num_blocks`, `vocabulary` (bytes) and
            `facts` (a path prefix, for the facts of each block).
        **kwargs: as for `tfds.core.GeneratorBasedBuilder`.
    """

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, recipe, **kwargs):
        self._recipe = recipe
        super().__init__(**kwargs)

    def _info(self):
        length = self._recipe["settings"].length
        return rows_info(self, length, disable_shuffling=True)  # sorted by key, not by its hash

    def _split_generators(self, dl_manager, pipeline):
        del dl_manager  # nothing is downloaded
        recipe = self._recipe
        settings = recipe["settings"]
        documents, _ = read_unique(pipeline, recipe["sources"], settings)
        splits = {}
        for part, num_blocks in recipe["num_blocks"].items():
            packed = (
                documents
                | f"{part}: place" >> beam.FlatMap(by_block, part, num_blocks, settings.valid)
                | f"{part}: group" >> beam.GroupByKey()
                | f"{part}: pack"
                >> beam.ParDo(PackBlocks(recipe["vocabulary"], settings)).with_outputs(
                    "facts", main="rows"
                )
            )
            _ = packed.facts | f"{part}: facts" >> beam.io.WriteToText(f"{recipe['facts']}-{part}")
            splits[part] = packed.rows
        return splits

    def _generate_examples(self):  # TFDS insists on the method
        raise NotImplementedError("the splits are collections of examples already")


def prepare(settings, command, plan):
    """As `prepare` of `training.prepare.work`, on the Beam runner of the settings.

    All problems of the input are found before the first is reported.
    """
    sources = find_sources(settings.input, settings.format)
    if settings.vocabulary is not None:
        prepare_vocabulary.load(settings.vocabulary, settings)
    key = fingerprint(settings, sources)
    if prepare_folder.check_output(settings.out, key):
        prepare_folder.remove_rest(settings.out)
        return f"{settings.out} is already there, made from the same input and settings."
    plan.expect_pipelines(sources, settings)
    tfds.disable_progress_bar()
    with prepare_folder.work_folder(settings.out, key) as work, safe_environment():
        found, tokenizer = _count(sources, settings, work / "beam", plan)
        plan.begin(SECOND)
        folder, parts = _pack(sources, settings, found, tokenizer, work / "beam")
        statistics = {part: facts["statistics"] for part, facts in parts.items()}
        finish.check_complete(statistics, found["documents"])
        finish.check_size(statistics, settings)
        plan.begin(WRITE)
        finish.check_rows(folder, parts)
        facts = {"command": command, "fingerprint": key, "parts": parts, **found["facts"]}
        finish.record(folder, tokenizer, settings, facts)
        prepare_folder.move_into_place(folder, settings.out)
    return inspect.statistics(settings.out)


def _count(sources, settings, work, plan):
    """Runs the first pipeline, unless an earlier run did, and trains the vocabulary."""
    work.mkdir(exist_ok=True)
    done = work / "plan.json"
    if not done.exists():
        folder = _fresh(work, "plan")
        plan.begin(FIRST)
        with beam.Pipeline(settings.runner, _options(settings)) as pipeline:
            documents, problems = read_unique(pipeline, sources, settings)
            results = {"problems": problems}
            measured = documents | "measure" >> beam.Map(measure, settings.valid)
            totals = measured | "add sizes" >> beam.CombineGlobally(add_sizes)
            results["totals"] = totals | "totals as JSON" >> beam.Map(json.dumps)
            if settings.vocabulary is None:
                counter = SampledWordCounts(settings)
                words = documents | "count words" >> beam.ParDo(
                    counter, beam.pvalue.AsSingleton(totals)
                )
                merged = words | "add word counts" >> beam.CombinePerKey(sum)
                results["words"] = merged | "words as JSON" >> beam.Map(json.dumps)
            for name, lines in results.items():
                _ = lines | f"write {name}" >> beam.io.WriteToText(str(folder / name))
        messages = sorted(json.loads(line) for line in _lines(folder, "problems"))
        problems = Problems(settings.skip_bad, {})
        for message in messages:
            problems.add(message)
        (total,) = (json.loads(line) for line in _lines(folder, "totals"))
        num_blocks = {
            part: choose_num_blocks(total[f"{part}_bytes"], settings.block_bytes)
            for part in PARTS
            if total[f"{part}_documents"]
        }
        unique = sum(total[f"{part}_documents"] for part in PARTS)
        problems.check_rest(unique)
        facts = {"duplicates": total["read"] - unique, "problems": problems.state}
        if settings.vocabulary is None:
            plan.begin(VOCABULARY)
            counts = dict(json.loads(line) for line in _lines(folder, "words"))
            prepare_vocabulary.train(counts, settings).save(work / "vocabulary")
        write_sealed_json(done, {"num_blocks": num_blocks, "documents": unique, "facts": facts})
        shutil.rmtree(folder)
    vocabulary = settings.vocabulary or work / "vocabulary"
    with refused_if_damaged(done):
        found = read_sealed_json(done)
    return found, prepare_vocabulary.load(vocabulary, settings)


def _pack(sources, settings, found, tokenizer, work):
    """Runs the second pipeline; returns the folder and the facts of each part."""
    folder = _fresh(work, "tfds")
    tokenizer.save(folder / "vocabulary")
    recipe = {
        "sources": sources,
        "settings": settings,
        "num_blocks": found["num_blocks"],
        "vocabulary": (folder / "vocabulary").read_bytes(),
        "facts": str(folder / "facts"),
    }
    builder = PackedRows(recipe, data_dir=folder, file_format="array_record")
    builder.download_and_prepare(
        download_config=tfds.download.DownloadConfig(
            beam_runner=settings.runner, beam_options=_options(settings)
        )
    )
    parts = {}
    for part in PARTS:
        facts = [json.loads(line) for line in _lines(folder, f"facts-{part}")]
        parts[part] = finish.total(sorted(facts, key=lambda one: one["block"]), settings.pairs)
    return pathlib.Path(builder.data_path), parts


def _fresh(work, name):
    """A new folder in place of those of earlier runs, whose workers may write to theirs still."""
    for old in work.glob(f"{name}-*"):
        shutil.rmtree(old, ignore_errors=True)
    folder = work / f"{name}-{secrets.token_hex(8)}"
    folder.mkdir()
    return folder


def _options(settings):
    options = PipelineOptions(settings.beam_options.split())
    # as TFDS does: what Beam infers of outputs with tags is wrong
    options.view_as(TypeOptions).pipeline_type_check = False
    return options


def _lines(folder, prefix):
    """The lines of all files that a WriteToText wrote."""
    for file in sorted(folder.glob(f"{prefix}-*")):
        yield from file.read_text("utf-8").splitlines()
