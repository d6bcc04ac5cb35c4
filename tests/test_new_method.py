"""A new file in the folder of methods is the whole contribution: nothing else names it."""

import os
import pathlib
import shutil

import pytest
from interpreters import python

import keras_tupe

TESTS = pathlib.Path(__file__).parent
NAME = "linear_slope"
PARAMETRIZED = ("test_position_promises.py", "test_method_words.py")

EVERYWHERE = """
import collections, sys
import keras_tupe, pytest
from keras_tupe import positions
from training.draw.sources import load_method
from docs.generate.gallery import Settings
from training.machine.cost import slower
from docs.tables import method_table
from training.command.variant import parse

name, *files = sys.argv[1:]
assert keras_tupe.TupeBackbone(9, 1, 2, 4, 8, position=name).position == name
assert parse(f"{name}:slope=0.5").options == {"slope": 0.5}
assert name in Settings().names() and load_method(name) == name
assert f"| `{name}`" in method_table() and slower(name, 512) == 1.5

class Collected:
    def pytest_collection_modifyitems(self, items):
        found = [(item.path.name, item.name) for item in items]
        self.files = collections.Counter(file for file, test in found if name in test)

seen = Collected()
options = ["--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider"]
code = pytest.main([*options, *files], plugins=[seen])
print("FOUND", *(f"{file}:{count}" for file, count in sorted(seen.files.items())))
sys.exit(code)
"""


@pytest.mark.slow
def test_commands_tables_costs_and_tests_find_it(tmp_path):
    shutil.copytree(pathlib.Path(keras_tupe.__file__).parent, tmp_path / "keras_tupe")
    text = (TESTS.parent / "examples" / f"{NAME}.py").read_text(encoding="utf-8")
    text = text.replace("    shift_inv", "    relative_step_time=(1.2, 1.5),\n    shift_inv")
    file = tmp_path / "keras_tupe" / "positions" / f"{NAME}.py"
    file.write_text(text, encoding="utf-8")
    paths = (tmp_path, TESTS.parent, TESTS)
    files = [str(TESTS / file) for file in PARAMETRIZED]
    environment = {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    printed = python("-c", EVERYWHERE, NAME, *files, cwd=tmp_path, environment=environment)
    (line,) = [line for line in printed.splitlines() if line.startswith("FOUND")]
    found = dict(word.split(":") for word in line.split()[1:])
    assert {pathlib.Path(file).name for file in files} == found.keys()
    assert int(found["test_position_promises.py"]) > 5
