"""Packages that only some exports need."""

import importlib


def optional_module(name):
    """Returns a module of the extra `portable`.

    Raises:
        ImportError: if it is not installed; says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            "Exports to ONNX and LiteRT are made and checked with packages that keras_tupe does "
            "not need otherwise. Install them with: pip install 'keras-tupe[portable]'. Received: "
            f"{error}"
        ) from error
