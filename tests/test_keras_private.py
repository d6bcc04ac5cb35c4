"""Private names of Keras and KerasHub are used in one folder, which gives a reason for each."""

import ast
import functools
import importlib
import inspect
import pathlib
import re

import keras
import keras_hub
import pytest

from keras_tupe import _keras_private

ONE_ROOM = pathlib.Path(_keras_private.__file__).parent
ROOT = ONE_ROOM.parents[1]
SOURCES = {
    "keras": pathlib.Path(keras.__file__).parent,
    "keras_hub": pathlib.Path(keras_hub.__file__).parent,
}
# Where Keras defines what classes of ours inherit. Other private names are no danger there.
INHERITED = {
    "keras": (
        "src/backend/*/layer.py",
        "src/backend/*/optimizer.py",
        "src/backend/*/trainer.py",
        "src/layers/core/*dense.py",
        "src/layers/layer.py",
        "src/losses/loss*.py",
        "src/metrics/metric.py",
        "src/models/*.py",
        "src/ops/operation.py",
        "src/optimizers/*.py",
        "src/saving/keras_saveable.py",
        "src/trainers/trainer.py",
    ),
    "keras_hub": ("src/models/*.py", "src/tokenizers/tokenizer.py"),
}
OF_CALLBACKS = {"keras": ("src/callbacks/callback.py",)}
ALL = {"keras": ("src/**/*.py",), "keras_hub": ("src/*/*.py",)}
DEFINED = re.compile(r"\bself\.(_[a-z]\w*)|^ +def (_[a-z]\w*)\(|^ +(_[a-z]\w*) = ", re.MULTILINE)


def names_in(patterns):
    """Returns the private names that classes of Keras and KerasHub have: package -> globs."""
    found = set()
    for package, globs in patterns.items():
        for file in (file for glob in globs for file in SOURCES[package].glob(glob)):
            if not file.stem.endswith("_test"):
                groups = DEFINED.findall(file.read_text(encoding="utf-8"))
                found |= {name for group in groups for name in group if name}
    return found


@functools.cache
def names_of_keras():
    """Returns three sets of private names: what classes inherit, callbacks inherit, and all."""
    return names_in(INHERITED), names_in(OF_CALLBACKS), names_in(ALL)


@functools.cache
def all_nodes(tree):
    """Returns the nodes of a tree."""
    return list(ast.walk(tree))


def nodes(tree, kind):
    """Returns the nodes of a kind in a tree."""
    return [node for node in all_nodes(tree) if isinstance(node, kind)]


def names_above(owner):
    """Returns the names that the bases of a class are made of, `{"keras"}` of `keras.Model`."""
    return {node.id for base in owner.bases for node in nodes(base, ast.Name)}


@functools.cache
def our_trees():
    """Returns the syntax trees of package, commands and benchmarks, by path."""
    folders = (ONE_ROOM.parent, ROOT / "training", ROOT / "benchmarks")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(files)}


@functools.cache
def keras_classes():
    """Returns the names of our classes that inherit from Keras, or are a part of such a class."""
    owners = [owner for tree in our_trees().values() for owner in nodes(tree, ast.ClassDef)]
    trees = [tree for file, tree in our_trees().items() if file.parent == ONE_ROOM]
    in_one_room = [owner.name for tree in trees for owner in nodes(tree, ast.ClassDef)]
    found, before = {*SOURCES, "ChecksData", *in_one_room}, set()
    while found != before:
        before = set(found)
        found |= {owner.name for owner in owners if names_above(owner) & before}
    return found


def private_names(owner):
    """Returns the private names that a class defines, or uses of itself: name -> line."""
    found = {node.name: node.lineno for node in nodes(owner, ast.FunctionDef)}
    found |= {n.id: n.lineno for n in nodes(owner, ast.Name) if isinstance(n.ctx, ast.Store)}
    for node in nodes(owner, ast.Attribute):
        if ast.unparse(node.value) in ("self", "cls", "super()"):
            found[node.attr] = node.lineno
    return {name: line for name, line in found.items() if re.match("_[a-z]", name)}


def private_uses(tree):
    """Returns where the syntax tree of a file uses private names of Keras: `(line, name)`s."""
    inherited, of_callbacks, everything = names_of_keras()
    found, own, modules = set(), set(), set()
    for node in nodes(tree, ast.ImportFrom | ast.Import):
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for name in (f"{module}{alias.name}" for alias in node.names):
            package, *inner = name.split(".")
            if package in SOURCES and "src" in inner:
                found.add((node.lineno, name))
            if inner and inner[-1].islower():
                modules.add(inner[-1])
    for owner in nodes(tree, ast.ClassDef):
        own |= set(private_names(owner))
        if (names_above(owner) | {owner.name}) & keras_classes():
            is_callback = any(".callbacks." in ast.unparse(base) for base in owner.bases)
            taken = of_callbacks if is_callback else inherited
            found |= {(n, name) for name, n in private_names(owner).items() if name in taken}
    for node in nodes(tree, ast.Attribute):
        if node.attr == "src" or node.attr in everything - own:
            above = ast.unparse(node.value)
            of_self = above in ("self", "cls") or above.startswith("super(")
            if above in SOURCES if node.attr == "src" else not of_self and above not in modules:
                found.add((node.lineno, node.attr))
    for node in nodes(tree, ast.Call):
        if ast.unparse(node.func) in ("getattr", "setattr", "hasattr", "delattr"):
            name = getattr(node.args[1], "value", None)
            if name in inherited:
                found.add((node.lineno, name))
    return found


def test_private_names_of_keras_are_used_in_one_folder():
    assert {"Trainer", "TupeBackbone", "JaxSteps", "TensorFlowSteps"} <= keras_classes()
    found = {
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file, tree in our_trees().items()
        for line, name in private_uses(tree)
    }
    here = {use for use in found if use.startswith(f"{ONE_ROOM.relative_to(ROOT)}/")}
    assert len(here) > 15, "the search finds nothing"
    assert sorted(found - here) == [], "give each a function in keras_tupe/_keras_private"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("layers = model._flatten_layers()", "_flatten_layers"),
        ("models()[0].layer._losses.clear()", "_losses"),
        ("model._jax_state = {}", "_jax_state"),
        ("getattr(model, '_loss_tracker').result()", "_loss_tracker"),
        ("keras.src.losses.losses.LossFunctionWrapper(f)", "src"),
        ("import keras_hub.src.utils", "keras_hub.src.utils"),
        ("from keras.src.losses import losses", "keras.src.losses.losses"),
        ("from keras_hub import src", "keras_hub.src"),
        (
            "class A(keras.Model):\n    def f(self):\n        return self._compile_metrics",
            "_compile_metrics",
        ),
        ("class A(keras.Model):\n    def _symbolic_build(self):\n        pass", "_symbolic_build"),
        (
            "class A(JaxSteps):\n    def f(self):\n        super()._make_function()",
            "_make_function",
        ),
        ("class A(ChecksData):\n    def f(self):\n        self._tracker = None", "_tracker"),
        ("class A(keras.callbacks.Callback):\n    def f(self):\n        self._model = 1", "_model"),
    ],
)
def test_the_search_finds_each_way_to_use_one(code, name):
    assert {found for _, found in private_uses(ast.parse(code))} == {name}


@pytest.mark.parametrize(
    "code",
    [
        "class A:\n    def f(self):\n        self._losses = 1\n\ndef g(a):\n    return a._losses",
        "class A(keras.Model):\n    def _own(self):\n        return self._mine",
        "class A(keras.callbacks.Callback):\n    def f(self):\n        self._losses = []",
        "from benchmarks import _settings\n_settings._build()",
        "keras.Model.build(model)\nmodel.built",
    ],
)
def test_the_search_leaves_names_of_our_own_alone(code):
    assert not private_uses(ast.parse(code))


def test_every_use_has_its_reason_and_is_needed():
    users = [ast.unparse(tree) for file, tree in our_trees().items() if file.parent != ONE_ROOM]
    found = set()
    for file in ONE_ROOM.glob("[!_]*.py"):
        module = importlib.import_module(f"{_keras_private.__name__}.{file.stem}")
        for name, item in vars(module).items():
            if getattr(item, "__module__", None) == module.__name__:
                found.add(name)
                assert "\n\nPublic name: " in inspect.getdoc(item), name
                assert any(re.search(rf"\b{name}\b", text) for text in users), f"{name} is not used"
    assert {"all_layers", "JaxFit"} <= found
