"""The public names of the package, with what their docstrings must say.

Import its names from here.
"""

from docs.generate.public_names.class_members import PACKAGE, is_layer, members, parameters
from docs.generate.public_names.completeness import incomplete
from docs.generate.public_names.names import Name, all_names, exists, inherited, packages

__all__ = [
    "PACKAGE",
    "Name",
    "all_names",
    "exists",
    "incomplete",
    "inherited",
    "is_layer",
    "members",
    "packages",
    "parameters",
]
