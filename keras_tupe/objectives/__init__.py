"""The registry of objectives: what a model is pre-trained to predict. One file here is one.

For whoever pre-trains in a loop of their own, or adds an objective: `OBJECTIVES` maps the names of
the files to their records, `get` looks a name up, `load_file` adds the `OBJECTIVE` of a file
outside the package, and `Objective` is the record that a file fills.
"""

from keras_tupe._registry import Registry
from keras_tupe.objectives._objective import Objective, Output, masked_lm_flops

__all__ = ["OBJECTIVES", "Objective", "Output", "get", "load_file", "masked_lm_flops", "source_of"]

REGISTRY = Registry(
    __name__, __path__, Objective, "pre-training objective", argument="objective", word="objective"
)
OBJECTIVES = REGISTRY.records
get, load_file, source_of = REGISTRY.get, REGISTRY.load_file, REGISTRY.source_of
