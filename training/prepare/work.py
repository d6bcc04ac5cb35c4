"""The data set of a command line, made or gone on with, in one process."""

import contextlib
import shutil

from keras_tupe.data import find_sources
from training.prepare import finish, inspect, stages, vocabulary
from training.prepare import folder as prepare_folder
from training.prepare.plan import DEDUPLICATE, PACK, READ, VOCABULARY, WRITE
from training.prepare.problems import Problems
from training.prepare.settings import fingerprint
from training.prepare.spill import Spill


def prepare(settings, command, plan):
    """Makes the data set of `settings`, or finds that it is there.

    Args:
        settings: a `Settings` with `out`.
        command: the command line, for the record.
        plan: the `Plan` that shows how far it is.

    Returns:
        What to print: statistics, or that there was nothing to do.

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
        return f"{settings.out} is already there, made from the same input and settings."
    plan.expect_text(sources, settings)
    with (
        prepare_folder.work_folder(settings.out, key) as work,
        contextlib.closing(Spill(work / "documents")) as spill,
    ):
        if not spill.is_complete:
            plan.begin(READ)
            stages.read(sources, spill, settings, plan.reading(sources))
        plan.begin(DEDUPLICATE)
        found = stages.choose_blocks(spill, settings)
        Problems(settings.skip_bad, spill.state["problems"]).check_rest(found["documents"])
        plan.expect_words(found["words"], settings)
        plan.begin(VOCABULARY)
        tokenizer = stages.make_vocabulary(spill, found, settings, work, plan.counting)
        plan.begin(PACK)
        shown = plan.packing(found["words"])
        packed = stages.pack(spill, found, tokenizer, settings, work, shown)
        parts = {
            part: finish.total([block.facts for block in blocks], settings.pairs)
            for part, blocks in packed.items()
        }
        statistics = {part: facts["statistics"] for part, facts in parts.items()}
        finish.check_complete(statistics, found["documents"])
        finish.check_size(statistics, settings)
        plan.begin(WRITE)
        folder = work / "dataset"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shown = plan.writing(sum(found["num_blocks"].values()))
        finish.write(folder, packed, settings, shown)
        finish.check_rows(folder, parts)
        facts = {
            "command": command,
            "fingerprint": key,
            "duplicates": found["duplicates"],
            "problems": spill.state["problems"],
            "parts": parts,
        }
        finish.record(folder, tokenizer, settings, facts)
        prepare_folder.move_into_place(folder, settings.out)
    plan.finish()
    words = sum(part["words"] for part in statistics.values())
    return f"{inspect.statistics(settings.out)}\n\n{plan.profile(words)}"
