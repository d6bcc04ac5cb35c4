"""The data set of a command line, made or gone on with, in one process."""

import contextlib
import shutil
import time

import tqdm

from keras_tupe.data import find_sources
from training.command.tables import table
from training.prepare import finish, inspect, stages, vocabulary
from training.prepare import folder as prepare_folder
from training.prepare.problems import Problems
from training.prepare.settings import fingerprint
from training.prepare.spill import Spill


class Clock:
    """Seconds per stage."""

    def __init__(self):
        self.seconds = {}

    @contextlib.contextmanager
    def stage(self, name):
        """Measures the block."""
        start = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - start

    def profile(self, num_words):
        """A table of where the time went."""
        whole = sum(self.seconds.values())
        rows = [
            [name, f"{seconds:.1f}", f"{seconds / whole:.0%}", f"{num_words / seconds:,.0f}"]
            for name, seconds in [*self.seconds.items(), ("all", whole)]
            if seconds >= 0.05
        ]
        return table(["stage", "seconds", "share", "words per second"], rows)


def prepare(settings, command):
    """Makes the data set of `settings`, or finds that it is there.

    Args:
        settings: a `Settings` with `out`.
        command: the command line, for the record.

    Raises:
        ValueError: if something is wrong with the input.
        OSError: if the disk is full.
    """
    sources = find_sources(settings.input, settings.format)
    if settings.vocabulary is not None:
        vocabulary.load(settings.vocabulary, settings)  # before the long work
    key = fingerprint(settings, sources)
    if prepare_folder.check_output(settings.out, key):
        prepare_folder.remove_rest(settings.out)
        print(f"{settings.out} is already there, made from the same input and settings.")
        return
    clock = Clock()
    with (
        prepare_folder.work_folder(settings.out, key) as work,
        contextlib.closing(Spill(work / "documents")) as spill,
    ):
        with clock.stage("read and clean"), _reading_bar(sources) as bar:
            stages.read(sources, spill, settings, bar)
        with clock.stage("drop duplicates"):
            plan = stages.choose_blocks(spill, settings)
            Problems(settings.skip_bad, spill.state["problems"]).check_rest(plan["documents"])
        with clock.stage("vocabulary"):
            bar = _wrapper("counting words", " parts")
            tokenizer = stages.make_vocabulary(spill, plan, settings, work, bar)
        with clock.stage("tokenize and pack"), _packing_bar(plan) as bar:
            packed = stages.pack(spill, plan, tokenizer, settings, work, bar)
        parts = {
            part: finish.total([block.facts for block in blocks]) for part, blocks in packed.items()
        }
        statistics = {part: facts["statistics"] for part, facts in parts.items()}
        finish.check_complete(statistics, plan["documents"])
        finish.check_size(statistics, settings)
        with clock.stage("write and check"):
            folder = work / "dataset"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            finish.write(folder, packed, settings, _wrapper("writing", " blocks"))
            finish.check_rows(folder, parts)
            facts = {
                "command": command,
                "fingerprint": key,
                "duplicates": plan["duplicates"],
                "problems": spill.state["problems"],
                "parts": parts,
            }
            finish.record(folder, tokenizer, settings, facts)
            prepare_folder.move_into_place(folder, settings.out)
    words = sum(part["words"] for part in statistics.values())
    print(inspect.statistics(settings.out))
    print("\n" + clock.profile(words))


@contextlib.contextmanager
def _reading_bar(sources):
    """A bar over the bytes of the files, which also counts documents and words."""
    size = sum(source.num_bytes for source in sources) or None
    documents = words = 0
    start = time.monotonic()
    with tqdm.tqdm(
        total=size, desc="reading", unit="B", unit_scale=True, disable=None, smoothing=0.05
    ) as bar:

        def advance(num_bytes, num_documents, num_words):
            nonlocal documents, words
            documents += num_documents
            words += num_words
            bar.update(num_bytes)
            if num_bytes:
                rate = words / max(time.monotonic() - start, 1e-9)
                bar.set_postfix_str(f"{documents:,} documents, {rate:,.0f} words/s", refresh=False)

        yield advance


@contextlib.contextmanager
def _packing_bar(plan):
    words = 0
    start = time.monotonic()
    total = sum(plan["num_blocks"].values())
    with tqdm.tqdm(total=total, desc="packing", unit=" blocks", disable=None) as bar:

        def advance(num_blocks, num_words):
            nonlocal words
            words += num_words
            rate = words / max(time.monotonic() - start, 1e-9)
            bar.set_postfix_str(f"{rate:,.0f} words/s", refresh=False)
            bar.update(num_blocks)

        yield advance


def _wrapper(text, unit):
    return lambda items: tqdm.tqdm(items, desc=text, unit=unit, disable=None)
