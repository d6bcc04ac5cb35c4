"""The registry of objectives: what a model is pre-trained to predict. One file here is one.

For whoever pre-trains in a loop of their own, or adds an objective: `OBJECTIVES` maps the names of
the files to their records, `get` looks a name up, and `Objective` is the record that a file fills.
"""

import importlib
import pkgutil

from keras_tupe._keywords import did_you_mean, refuse_unknown_keywords
from keras_tupe.objectives._objective import Objective, Output

__all__ = ["OBJECTIVES", "Objective", "Output", "get"]

# The records of all objectives, by name.
OBJECTIVES = {
    module.name: importlib.import_module(f"{__name__}.{module.name}").OBJECTIVE
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
}


def get(name):
    """Returns the record of an objective.

    Args:
        name: name of a file in `keras_tupe/objectives`.

    Returns:
        An `Objective`.

    Raises:
        ValueError: if there is no such objective; the nearest name is suggested.

    Example:
        >>> get("causal_lm").attention_pattern
        'causal'
    """
    if isinstance(name, str) and name in OBJECTIVES:
        return OBJECTIVES[name]
    raise ValueError(
        f"Unknown objective.{did_you_mean(name, OBJECTIVES)} Expected one of "
        f"{sorted(OBJECTIVES)}. Received: objective={name!r}"
    )


refuse_unknown_keywords(globals())
