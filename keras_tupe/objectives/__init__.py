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
# The records of all objectives, by name; `load_file` adds more.
OBJECTIVES = REGISTRY.records
# From a name to its record; the error of an unknown name suggests the nearest.
get = REGISTRY.get
# From the path of a Python file, or of a preset that carries one, to the name of its record, which
# is then in `OBJECTIVES`. A preset never runs the file that it carries by itself.
load_file = REGISTRY.load_file
# From a name to the bytes of the file that was loaded; `None` for those of the package.
source_of = REGISTRY.source_of
