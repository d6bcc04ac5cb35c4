"""Positional methods as a part of studies."""

import hashlib

from keras_tupe import positions


def method_identity(variant):
    """Returns what tells methods apart, JSON values; a file counts by its content.

    Args:
        variant: a `Variant`.
    """
    found = {"position": variant.position, "position_options": variant.resolved()}
    source = positions.source_of(variant.position)
    if source is not None:
        found["position_file"] = hashlib.sha256(source).hexdigest()
    return found
