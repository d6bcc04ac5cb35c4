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
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        calls = [x for x in nodes if isinstance(x, ast.Call)]
        calls = [x for x in calls if getattr(x.func, "id", "") == "run_layer_contract"]
        first = [call.args[0] for call in calls]
        if any(getattr(x, "id", "") == "layer" for x in first):  # rows of a table
            first += [x.elts[0] for x in nodes if isinstance(x, ast.Tuple) and x.elts]
        found |= {x.id for x in first if isinstance(x, ast.Name)}
    return found


def test_every_layer_has_a_contract_test():
    found = layers_of_the_package()
    assert "ClsReset" in found, "the search finds layers"
    assert sorted(found - layers_under_contract()) == sorted(OF_INTEGERS)
