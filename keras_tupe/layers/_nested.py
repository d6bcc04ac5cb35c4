"""Layers inside the configuration of a layer."""

import keras


def unbuilt_layer(config):
    """Returns the layer of a serialized configuration, not yet built.

    Keras records in it how the layer was built and would build it at once; the outer
    layer builds it too, and a second time is an error.
    """
    config = {key: value for key, value in config.items() if key != "build_config"}
    return keras.saving.deserialize_keras_object(config)
