import ast
import pathlib

import keras

from keras_tupe import layers, positions

TESTS = pathlib.Path(__file__).parents[1]


# The answers of which are no numbers to learn by.
OF_INTEGERS = {"TokenReplacement"}


def layers_of_the_package():
    """Returns the names of all final layer classes that layers and positions define."""
    registered = keras.saving.get_custom_objects().values()
    return {
        found.__name__
        for found in (*registered, *(getattr(layers, name) for name in layers.__all__))
        if isinstance(found, type)
        and issubclass(found, keras.layers.Layer)
        and found.__module__.startswith((f"{layers.__name__}.", f"{positions.__name__}."))
        and not found.__name__.startswith(("Abstract", "PositionBias"))
    }


def layers_under_contract():
    """Returns the names of the classes that a test, or its table, hands to the contract."""
    found = set()
    for file in TESTS.rglob("test_*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for test in (x for x in tree.body if isinstance(x, ast.FunctionDef)):
            nodes = list(ast.walk(test))
            names = {x.id for x in nodes if isinstance(x, ast.Name)}
            if "run_layer_contract" in names:
                found |= names
                tables = [x for x in ast.walk(tree) if isinstance(x, ast.Tuple | ast.Call)]
                rows = [x.elts if isinstance(x, ast.Tuple) else x.args for x in tables]
                found |= {row[0].id for row in rows if row and isinstance(row[0], ast.Name)}
    return found


def test_every_layer_has_a_contract_test():
    found = layers_of_the_package()
    assert "ClsReset" in found, "the search finds layers"
    assert sorted(found - layers_under_contract()) == sorted(OF_INTEGERS)
