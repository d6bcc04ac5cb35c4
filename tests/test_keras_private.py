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
SOURCES = {one.__name__: pathlib.Path(one.__file__).parent for one in (keras, keras_hub)}
# Where Keras defines what classes of ours inherit. Other private names are no danger there.
OF_KERAS = """
backend/*/layer backend/*/optimizer backend/*/trainer layers/core/*dense layers/layer losses/loss*
metrics/metric models/* ops/operation optimizers/* saving/keras_saveable trainers/trainer
"""
INHERITED = {"keras": OF_KERAS, "keras_hub": "models/* tokenizers/tokenizer"}
OF_CALLBACKS = {"keras": "callbacks/callback"}
ALL = {"keras": "**/*", "keras_hub": "*/*"}
DEFINED = re.compile(r"\bself\.(_[a-z]\w*)|^ +def (_[a-z]\w*)\(|^ +(_[a-z]\w*) = ", re.MULTILINE)


def names_in(patterns):
    """Returns the private names that classes of Keras and KerasHub have: package -> globs."""
    found = set()
    for package, globs in patterns.items():
        source = SOURCES[package] / "src"
        for file in (file for glob in globs.split() for file in source.glob(f"{glob}.py")):
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
    return list(ast.walk(tree))


def nodes(tree, kind):
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
    found, before = {*SOURCES, "TupeTask", *in_one_room}, set()
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
    assert {"TupeBackbone", "TupeTask", "AdamW"} <= keras_classes()
    found = {
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file, tree in our_trees().items()
        for line, name in private_uses(tree)
    }
    here = {use for use in found if use.startswith(f"{ONE_ROOM.relative_to(ROOT)}/")}
    assert len(here) > 10, "the search finds nothing"
    assert sorted(found - here) == [], "give each a function in keras_tupe/_keras_private"


METHOD, MODEL = "\n    def f(self):\n        ", "class A(keras.Model):"


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
        (f"{MODEL}{METHOD}return self._compile_metrics", "_compile_metrics"),
        (f"{MODEL}\n    def _symbolic_build(self):\n        pass", "_symbolic_build"),
        (f"class A(TupeTask):{METHOD}self._tracker = None", "_tracker"),
        (f"class A(keras.callbacks.Callback):{METHOD}self._model = 1", "_model"),
        # names of our own are left alone
        (f"class A:{METHOD}self._losses = 1\n\ndef g(a):\n    return a._losses", None),
        (f"{MODEL}\n    def _own(self):\n        return self._mine", None),
        (f"class A(keras.callbacks.Callback):{METHOD}self._losses = []", None),
        ("from benchmarks import _settings\n_settings._build()", None),
        ("keras.Model.build(model)\nmodel.built", None),
    ],
)
def test_the_search_finds_each_way_to_use_one_and_no_other(code, name):
    assert {found for _, found in private_uses(ast.parse(code))} == ({name} if name else set())


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
    assert "all_layers" in found
