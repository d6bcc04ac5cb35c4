"""Pre-training on JAX needs no more than `tests/requirements-jax.txt` installs."""

import importlib.metadata
import re
import tomllib

from module_graph import MODULES, ROOT, imports

# What the listed ones bring, and what `pip install --no-deps` adds beside the list.
BROUGHT = {"h5py", "numpy", "scipy", "keras-hub", "tokenizers"}


def distributions(lines):
    return {re.match(r"[\w.-]+", line)[0].lower() for line in lines if re.match(r"\w", line)}


def imported_at_once(first):
    """Returns the names that importing a module imports, and those that importing these does."""
    found, todo = set(), [first]
    while todo:
        names = {name.rpartition(".")[0] for name in todo} | set(todo)
        todo = []
        for name in (names - found) & MODULES.keys():
            todo += imports(name, top_level_only=True)
        found |= names
    return found


def test_pretrain_imports_only_what_the_jax_environment_has():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = (ROOT / "tests/requirements-jax.txt").read_text("utf-8").splitlines()
    absent = distributions(project["dependencies"]) - distributions(listed) - BROUGHT
    by_module = importlib.metadata.packages_distributions().items()
    hidden = {module for module, of in by_module if {name.lower() for name in of} & absent}
    found = imported_at_once("training.pretrain.run") | imported_at_once("training.pretrain.loop")
    assert {"keras_tupe.trainer", "training.command.folder_lock"} <= found
    assert "tensorflow" in hidden
    assert not {name.split(".")[0] for name in found} & hidden
