"""Fresh copies of an initializer."""

import keras


def fresh(initializer):
    """Returns a new initializer of the same kind, with a seed of its own.

    A Keras 3 initializer draws the same numbers on every call for the same shape, so
    one instance shared by query and key would make the two projections equal.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return keras.initializers.get(initializer)
    return initializer.__class__.from_config(initializer.get_config())
