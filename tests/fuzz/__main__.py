"""Attacks all readers for some minutes, in a process that may crash, and prints what came of it.

    python tests/fuzz --minutes 10
    python tests/fuzz --reader checkpoint --minutes 1 --seed 5
    python tests/fuzz --reader checkpoint --seed 5 --number 123 --keep FOLDER

The last one repeats one execution and leaves the damaged files in FOLDER.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

HANG_SECONDS = 60
_ROOM_BYTES = 3 * 2**30  # of memory that an execution may take, on top of all that is loaded
_SLICE_SECONDS = 0.3


class Tally:
    """What came of the executions of one reader, in values that JSON can hold."""

    def __init__(self):
        self.counts = collections.Counter()
        self.findings = {}

    def add(self, outcome, number):
        """Counts an `Outcome`; the first of each key is kept."""
        self.counts[outcome.kind] += 1
        if outcome.kind == "finding":
            first = self.findings.setdefault(outcome.key, [0, number, outcome.text])
            first[0] += 1


def work(names, seed, starts, seconds, folder):
    """Attacks readers in turns and writes what came of it; the process may not survive this.

    Args:
        names: of readers.
        seed: of all executions.
        starts: dictionary: name -> number of the first execution.
        seconds: how long.
        folder: where `now.json` says what is being done, and `tallies.json` what was found.
    """
    from fuzz_engine import Attack
    from fuzz_rooms import all_readers

    readers = all_readers()
    attacks, tallies, numbers = {}, {}, {}
    for name in names:
        attacks[name] = Attack(readers[name], folder / "files" / re.sub(r"\W+", "_", name))
        attacks[name].good()
        tallies[name], numbers[name] = Tally(), starts.get(name, 0)
    used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM_BYTES, used + _ROOM_BYTES))
    now = open(folder / "now", "r+b", buffering=0)  # noqa: SIM115 (until the process ends)
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        for name, attack in attacks.items():
            turn = time.monotonic()
            while time.monotonic() - turn < _SLICE_SECONDS and turn - start < seconds:
                number = numbers[name]
                os.pwrite(now.fileno(), json.dumps([name, number]).ljust(200).encode(), 0)
                tallies[name].add(attack.execute(seed, number), number)
                numbers[name] += 1
            _save(folder, tallies)


def _save(folder, tallies):
    content = {name: [tally.counts, tally.findings] for name, tally in tallies.items()}
    partial = folder / "tallies.partial"
    partial.write_text(json.dumps(content))
    partial.replace(folder / "tallies.json")


def attack_all(names, seed, minutes):
    """Runs `work` in processes, one after the other, until the time is over; returns the tallies.

    A process that dies or hangs is a finding of the execution that it was at.
    """
    totals = {name: Tally() for name in names}
    starts = dict.fromkeys(names, 0)
    end = time.monotonic() + 60 * minutes
    while (left := end - time.monotonic()) > 1:
        with tempfile.TemporaryDirectory(dir=_fast_folder()) as place:
            folder = pathlib.Path(place)
            (folder / "now").write_bytes(b"")
            words = [sys.executable, str(HERE), "--work", place, "--seed", str(seed)]
            words += ["--seconds", str(left), "--starts", json.dumps(starts)]
            process = subprocess.Popen(words, start_new_session=True, stderr=subprocess.PIPE)
            death = _watch(process, folder / "now", end)
            _add_up(totals, starts, folder, death)
            if death is not None and not (folder / "now").read_bytes():
                sys.exit(f"The attack could not begin: {death}")
    return totals


def _fast_folder():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _watch(process, now, end):
    """Waits for the end of a process; returns why it died, or `None` if it ended well."""
    import threading

    lines = collections.deque(maxlen=20)
    reader = threading.Thread(target=lambda: lines.extend(process.stderr), daemon=True)
    reader.start()
    before, since = None, time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        state = now.read_bytes()
        if state != before:
            before, since = state, time.monotonic()
        stuck = time.monotonic() - since > HANG_SECONDS + 120 * (not state)
        if stuck or time.monotonic() > end + HANG_SECONDS:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"no end after {HANG_SECONDS} seconds"
    reader.join(5)
    if process.returncode:
        said = b"".join(lines).decode("utf-8", "replace").strip()[-1500:]
        return f"the process ended with {process.returncode}: {said}"
    return None


def _add_up(totals, starts, folder, death):
    path = folder / "tallies.json"
    for name, (counts, findings) in json.loads(path.read_text() if path.exists() else "{}").items():
        totals[name].counts.update(counts)
        starts[name] += sum(counts.values())
        for key, (count, number, text) in findings.items():
            totals[name].findings.setdefault(key, [0, number, text])[0] += count
    state = (folder / "now").read_bytes().strip()
    if death is not None and state:
        name, number = json.loads(state)
        totals[name].counts.update({"finding": 1})
        totals[name].findings.setdefault("death", [0, number, death])[0] += 1
        starts[name] = number + 1


def report(totals):
    """Returns the table of all readers, and the findings below it."""
    header = f"{'reader':<45} {'executions':>10} {'accepted':>9} {'refused':>9} {'findings':>9}"
    lines = [header]
    sums = collections.Counter()
    for name, tally in totals.items():
        sums.update(tally.counts)
        lines.append(_line(name, tally.counts))
    lines.append(_line("all", sums))
    for name, tally in totals.items():
        for key, (count, number, text) in tally.findings.items():
            lines += ["", f"{name}: {key}, {count} times, first --number {number}", f"    {text}"]
    return "\n".join(lines)


def _line(name, counts):
    cells = [sum(counts.values()), *(counts[kind] for kind in ("accepted", "refused", "finding"))]
    return f"{name:<45} {cells[0]:>10,} {cells[1]:>9,} {cells[2]:>9,} {cells[3]:>9,}"


def repeat(name, seed, number, keep):
    """Repeats one execution and prints its outcome with the traceback."""
    import traceback

    from fuzz_engine import Attack
    from fuzz_rooms import all_readers

    reader = all_readers()[name]
    shutil.rmtree(keep, ignore_errors=True)
    attack = Attack(reader, keep)
    attack.damage(seed, number)
    try:
        print("accepted:", reader.read(attack.folder))
    except Exception:
        traceback.print_exc()


def main():
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        prog="fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="how long; default: 10")
    parser.add_argument("--seed", type=int, default=0, help="of all executions; default: 0")
    parser.add_argument("--reader", action="append", metavar="NAME", help="only these readers")
    parser.add_argument("--not", action="append", dest="without", default=[], metavar="NAME")
    parser.add_argument("--number", type=int, help="repeat this execution of one --reader")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("fuzz_files"))
    for name in ("--work", "--starts"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        starts = json.loads(options.starts)
        work(list(starts), options.seed, starts, options.seconds, pathlib.Path(options.work))
        return
    if options.number is not None:
        repeat(options.reader[0], options.seed, options.number, options.keep)
        return
    from fuzz_rooms import all_readers

    wanted = options.reader or [""]
    names = [name for name in all_readers() if any(word in name for word in wanted)]
    names = [name for name in names if not any(word in name for word in options.without)]
    totals = attack_all(names, options.seed, options.minutes)
    print(report(totals))
    sys.exit(1 if any(tally.findings for tally in totals.values()) else 0)


if __name__ == "__main__":
    main()
