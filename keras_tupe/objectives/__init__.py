"""The registry of objectives: what a model is pre-trained to predict. One file here is one.

For whoever pre-trains in a loop of their own, or adds an objective: `OBJECTIVES` maps the names of
the files to their records, `get` looks a name up, and `Objective` is the record that a file fills.
"""

from keras_tupe._registry import look_up, records_in
from keras_tupe.objectives._objective import Objective, Output

__all__ = ["OBJECTIVES", "Objective", "Output", "get"]

# The records of all objectives, by name.
OBJECTIVES = records_in(__name__, __path__, "OBJECTIVE")


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
    return look_up(name, OBJECTIVES, "objective", "objective")
