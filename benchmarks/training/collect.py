"""All measurements of a run: one group of processes per size, precision and length."""

import contextlib
import dataclasses
import itertools

from tqdm import tqdm

from benchmarks.harness.environments import PEER, folder_of
from benchmarks.harness.process import ChildError
from benchmarks.training import products, systems, times
from benchmarks.training.batch import num_slots
from keras_tupe import SIZES
from keras_tupe.trainer import step_flops


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

    Returns:
        A dictionary: `rows`, in the order of the table; `input_wait`, a row per group;
        `peak_flops`, by precision, per second; `facts`, by system; `left_out`, why there are no
        rows of torch, or `None`; `problems`, a sentence for each measurement that failed.
    """
    python, left_out = None, "--no-peers was given"
    if settings.peers:
        python, left_out = PEER.ensure(folder_of(settings.peer_environment))
    found = {"rows": [], "input_wait": [], "peak_flops": {}, "facts": {}, "left_out": left_out}
    found["problems"] = []
    groups = list(itertools.product(settings.sizes, settings.precisions, settings.lengths))
    by_size = {size: systems.systems_for(settings, size, python) for size in settings.sizes}
    # each process is started, and asked once more than counts; then the one on real rows
    total = sum((settings.rounds + 2) * (len(by_size[size]) + 1) for size, _, _ in groups)
    with tqdm(total=total, unit="turn", disable=None) as bar:
        for size, precision, length in groups:
            bar.set_description(f"{size}, {precision}, n = {length}")
            _Group(settings, size, precision, length).measure(by_size[size], found, bar.update)
    for row in found["rows"]:
        peak = found["peak_flops"].get(row["precision"])
        row["peak_share"] = row["flops_per_second"] / peak if peak else None
    return found


class _Group:
    """What is measured together."""

    def __init__(self, settings, size, precision, length):
        self._settings = settings
        self._batch_size = max(1, settings.tokens_of(size) // length)
        self._sizes = dataclasses.asdict(SIZES[size])
        self._facts = {"size": size, "precision": precision, "length": length}
        self._vocabulary_size = settings.vocabulary_of(size)

    def measure(self, group, found, tick):
        by_label = {system.label: system for system in group}
        with contextlib.ExitStack() as stack:
            workers = self._started(group, found, stack, tick)
            answers = self._answers(workers, found, tick)
            memory = {label: workers[label].ask("memory")["mib"] for label in answers}
        of_products = {
            label: answers.pop(label)
            for label in list(answers)
            if by_label[label].kind == systems.PRODUCT
        }
        self._add_peak(of_products, by_label, found)
        peers = [system.label for system in group if system.kind == systems.PEER]
        found_times = times.times(answers, peers, self._settings.positions[0])
        for label, row in found_times.items():
            kind = by_label[label].kind
            found["rows"].append(self._row(label, kind, row, answers[label][-1], memory[label]))
        self._add_input_wait(found, tick)

    def _started(self, group, found, stack, tick):
        """Returns the processes that got ready, by label; one after the other."""
        job = {
            "sizes": self._sizes,
            "vocabulary_size": self._vocabulary_size,
            "batch_size": self._batch_size,
            "length": self._facts["length"],
            "precision": self._facts["precision"],
        }
        workers = {}
        for system in group:
            try:
                workers[system.label] = system.start(job)
            except ChildError as error:
                self._add_problem(system.label, error, found)
            else:
                stack.callback(workers[system.label].close)
                found["facts"].setdefault(system.label, workers[system.label].facts)
            tick()
        return workers

    def _answers(self, workers, found, tick):
        answers, failures = times.measure(workers, self._settings.rounds, tick)
        for label, error in failures.items():
            self._add_problem(label, error, found)
        return answers

    def _add_problem(self, label, error, found):
        where = ", ".join(str(value) for value in self._facts.values())
        found["problems"].append(f"{label} ({where}): {error}")

    def _add_peak(self, of_products, by_label, found):
        precision = self._facts["precision"]
        for label, answers in of_products.items():
            operations = products.flops(by_label[label].job["width"])
            best = operations / max(min(answer["wall"] for answer in answers), 1e-9)
            found["peak_flops"][precision] = max(best, found["peak_flops"].get(precision, 0))

    def _row(self, label, kind, numbers, last, mib):
        tokens = self._batch_size * self._facts["length"]
        sizes = {name: size for name, size in self._sizes.items() if name != "num_heads"}
        flops = step_flops(
            **sizes,
            vocabulary_size=self._vocabulary_size,
            batch_size=self._batch_size,
            length=self._facts["length"],
            num_slots=num_slots(self._facts["length"]),
        )
        return {
            **self._facts,
            "batch_size": self._batch_size,
            "label": label,
            "kind": kind,
            **numbers,
            "tokens_per_second": 1e3 * tokens / numbers["ms"],
            "flops_per_second": 1e3 * flops / numbers["ms"],
            "peak_memory_mib": mib,
            "loss": last["loss"],
        }

    def _add_input_wait(self, found, tick):
        with contextlib.ExitStack() as stack:
            system = systems.pipeline_system(self._settings)
            answers = self._answers(self._started([system], found, stack, tick), found, tick)
        for own in answers.values():
            share = sum(a["wait"] for a in own) / sum(a["wall"] for a in own)
            row = {**self._facts, "batch_size": self._batch_size, "share": share}
            found["input_wait"].append(row)
