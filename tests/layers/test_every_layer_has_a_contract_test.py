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
        and not found.__name__.startswith("Abstract")
    }


def layers_under_contract():
    """Returns the names of the classes that tests hand to `run_layer_contract` or `Contract`."""
    calls = (
        node
        for file in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("run_layer_contract", "Contract")
    )
    return {call.args[0].id for call in calls if isinstance(call.args[0], ast.Name)}


def test_every_layer_has_a_contract_test():
    found = layers_of_the_package()
    assert "ClsReset" in found, "the search finds layers"
    assert sorted(found - layers_under_contract()) == sorted(OF_INTEGERS)
