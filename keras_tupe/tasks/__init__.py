"""The registry of tasks: what an encoder is trained to answer. One file here is one task.

For whoever trains a model, or adds a task: `TASKS` maps the names of the files to their classes,
`get` looks a name up, and `load_file` adds the `TASK` of a file outside the package. All that such
a file needs is here: the base `TupeTask`, which stands before a class of KerasHub and says what is
written once for all; `setting` with rules for options, `checked` of a function of
`keras_tupe.check`; `normal` and `token_crossentropy`.
"""

from keras_tupe.tasks._task import REGISTRY, TupeTask, normal, token_crossentropy
from keras_tupe.trunk.config import ANY, COUNT, FLAG, SHARE, checked, setting

__all__ = [
    "ANY",
    "COUNT",
    "FLAG",
    "SHARE",
    "TASKS",
    "TupeTask",
    "checked",
    "get",
    "load_file",
    "normal",
    "setting",
    "source_of",
    "token_crossentropy",
]

REGISTRY.add_files(__path__)
# The classes of all tasks, by the name of the file; `load_file` adds more.
TASKS = REGISTRY.records
# From a name to its class; the error of an unknown name suggests the nearest.
get = REGISTRY.get
# From the path of a Python file, or of a preset that carries one, to the name of its task, which
# is then in `TASKS`. A preset never runs the file that it carries by itself.
load_file = REGISTRY.load_file
# From a name to the bytes of the file that was loaded; `None` for those of the package.
source_of = REGISTRY.source_of
