"""All measurements of a run: one group of processes per size, precision and batch."""

import contextlib
import dataclasses
import os
import sys

from tqdm import tqdm

from benchmarks.harness.memory import available
from benchmarks.harness.process import ChildError
from benchmarks.training import products, systems, times
from benchmarks.training.batch import WARM_UP_STEPS, num_slots
from benchmarks.training.settings import STEPS_PER_TURN
from keras_tupe import SIZES
from keras_tupe.trainer import step_flops
from training.command.report import duration

# Of an ordinary core, to say beforehand about how long a run will take: operations per second,
# seconds of a step besides, and seconds to start a process and to compile.
_FLOPS_PER_CORE, _STEP, _START, _COMPILE = 50e9, 0.06, 12, 40
_ROOM = 1.3  # what another process must find free, by what the largest of its group took


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

    Returns:
        A dictionary: `rows`, in the order of the table; `input_wait`, a row per group;
        `peak_flops`, by precision, per second; `facts`, by system; `left_out`, a sentence for
        each system that there was no environment or no memory for; `problems`, a sentence for
        each measurement that failed.
    """
    found = {"rows": [], "input_wait": [], "peak_flops": {}, "facts": {}, "left_out": []}
    found["problems"] = []
    pythons = _pythons(settings, found)
    groups = [
        _Group(settings, pythons, size, precision, shape)
        for size in settings.sizes
        for precision in settings.precisions
        for shape in settings.shapes_of(size)
    ]
    seconds = sum(group.seconds() for group in groups)
    print(f"training: about {duration(seconds)} if nothing else runs.", file=sys.stderr)
    # each process is started, and asked once more than counts
    total = sum(group.num_turns() for group in groups)
    with tqdm(total=total, unit="turn", disable=None) as bar:
        for group in groups:
            bar.set_description(group.name)
            group.measure(found, bar.update)
    for row in found["rows"]:
        peak = found["peak_flops"].get(row["precision"])
        row["peak_share"] = row["flops_per_second"] / peak if peak else None
    return found


def _pythons(settings, found):
    """Returns the interpreters by library; why one is not there is left in `found`."""
    wanted = {systems.PEERS[name].library for name in settings.peer_names}
    pythons = {systems.TENSORFLOW: sys.executable}
    for library, (environment, folder) in settings.environments().items():
        if library in wanted:
            python, reason = environment.ensure(folder)
            if python is None:
                found["left_out"].append(f"what needs {library}: {reason}")
            else:
                pythons[library] = python
    if not settings.peer_names:
        found["left_out"].append("peers: --peers none was given")
    return pythons


class _Group:
    """What is measured together."""

    def __init__(self, settings, pythons, size, precision, shape):
        self._batch_size, length = shape
        self._sizes = dataclasses.asdict(SIZES[size])
        self._facts = {"size": size, "precision": precision, "length": length}
        self._vocabulary_size = settings.vocabulary_of(size)
        self._rounds = settings.rounds_of(size)
        self._systems = systems.systems_for(settings, size, pythons)
        self._pipelines = [systems.pipeline_system(settings)] if settings.has_extras(size) else []
        self._baseline = settings.positions[0]
        self._turn = STEPS_PER_TURN.get(size, 1)
        self.name = f"{size}, {precision}, {self._batch_size} x {length}"

    def num_turns(self):
        """Returns how often `tick` of `measure` is called if nothing fails."""
        return (self._rounds + 2) * (len(self._systems) + len(self._pipelines))

    def seconds(self):
        """Returns about how long it takes."""
        step = self._flops() / (_FLOPS_PER_CORE * len(os.sched_getaffinity(0))) + _STEP
        steps = WARM_UP_STEPS + self._turn * (self._rounds + 1)
        compiled = sum(
            bool(system.job.get("jit_compile") or system.job.get("compile"))
            for system in self._systems
        )
        number = len(self._systems) + len(self._pipelines)
        return number * (_START + steps * step) + compiled * _COMPILE

    def measure(self, found, tick):
        """Adds what is measured to `found`; calls `tick` after each turn."""
        by_label = {system.label: system for system in self._systems}
        with contextlib.ExitStack() as stack:
            workers = self._started(self._systems, found, stack, tick)
            answers = self._answers(workers, found, tick)
            memory = {label: workers[label].ask("memory")["mib"] for label in answers}
            chosen = {label: workers[label].facts.get("compiles_passes") for label in answers}
        of_products = {
            label: answers.pop(label)
            for label in list(answers)
            if by_label[label].kind == systems.PRODUCT
        }
        self._add_peak(of_products, by_label, found)
        peers = [system.label for system in self._systems if system.kind == systems.PEER]
        references = {"": peers, "hub_": [systems.KERAS_HUB], "baseline_": [self._baseline]}
        for label, row in times.times(answers, references).items():
            kind = by_label[label].kind
            row["compiles_passes"] = chosen[label]
            found["rows"].append(self._row(label, kind, row, answers[label][-1], memory))
        self._add_input_wait(found, tick)

    def _started(self, group, found, stack, tick):
        """Returns the processes that got ready, by label; one after the other."""
        job = {
            "sizes": self._sizes,
            "vocabulary_size": self._vocabulary_size,
            "batch_size": self._batch_size,
            "length": self._facts["length"],
            "precision": self._facts["precision"],
            "steps_per_turn": self._turn,
        }
        workers = {}
        for system in group:
            needed = _ROOM * max((worker.resident() for worker in workers.values()), default=0)
            left = available()
            if left < needed:
                found["left_out"].append(
                    f"{self._where(system.label)}: it needs about {needed / 2**30:.1f} GiB of "
                    f"memory, and {left / 2**30:.1f} are free"
                )
                tick()
                continue
            try:
                workers[system.label] = system.start(job)
            except ChildError as error:
                found["problems"].append(f"{self._where(system.label)}: {error}")
            else:
                stack.callback(workers[system.label].close)
                facts = dict(workers[system.label].facts)
                facts.pop("compiles_passes", None)  # of this group alone
                found["facts"].setdefault(system.label, facts)
            tick()
        return workers

    def _answers(self, workers, found, tick):
        answers, failures = times.measure(workers, self._rounds, tick)
        for label, error in failures.items():
            found["problems"].append(f"{self._where(label)}: {error}")
        return answers

    def _where(self, label):
        return f"{label} ({', '.join(str(value) for value in self._facts.values())})"

    def _add_peak(self, of_products, by_label, found):
        precision = self._facts["precision"]
        for label, answers in of_products.items():
            operations = products.flops(by_label[label].job["width"])
            best = operations / max(min(answer["wall"] for answer in answers), 1e-9)
            found["peak_flops"][precision] = max(best, found["peak_flops"].get(precision, 0))

    def _flops(self):
        sizes = {name: size for name, size in self._sizes.items() if name != "num_heads"}
        return step_flops(
            **sizes,
            vocabulary_size=self._vocabulary_size,
            batch_size=self._batch_size,
            length=self._facts["length"],
            num_slots=num_slots(self._facts["length"]),
        )

    def _row(self, label, kind, numbers, last, memory):
        tokens = self._batch_size * self._facts["length"]
        own = memory[label]
        to_others = {
            f"{name}_memory_ratio": own / memory[other] if memory.get(other) else None
            for name, other in (("hub", systems.KERAS_HUB), ("torch", systems.TORCH))
        }
        return {
            **self._facts,
            "batch_size": self._batch_size,
            "label": label,
            "kind": kind,
            **numbers,
            "tokens_per_second": 1e3 * tokens / numbers["ms"],
            "flops_per_second": 1e3 * self._flops() / numbers["ms"],
            "peak_memory_mib": own,
            **to_others,
            "loss": last["loss"],
        }

    def _add_input_wait(self, found, tick):
        with contextlib.ExitStack() as stack:
            workers = self._started(self._pipelines, found, stack, tick)
            answers = self._answers(workers, found, tick)
        for own in answers.values():
            share = sum(a["wait"] for a in own) / sum(a["wall"] for a in own)
            row = {**self._facts, "batch_size": self._batch_size, "share": share}
            found["input_wait"].append(row)
