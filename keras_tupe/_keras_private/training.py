"""What `fit` does, for a loop of our own."""

import keras


def loss_of_function(function):
    """Returns a function (targets, outputs) -> losses as a loss that makes their ranks fit.

    Public name: none; `keras.losses.LossFunctionWrapper` if it were exported.
    """
    return keras.src.losses.losses.LossFunctionWrapper(function)


def on_all_devices(batch):
    """Returns a batch of arrays, which JAX spreads over the devices of `keras.distribution`.

    Public name: none; `fit` does the same by itself.
    """
    distribution = keras.distribution.distribution()
    if distribution is None:
        return batch
    from keras.src.backend.jax.distribution_lib import distribute_data_input

    def spread(array):
        layout = distribution.get_data_layout(array.shape)
        return distribute_data_input(array, layout, distribution.batch_dim_name)

    return keras.tree.map_structure(lambda x: None if x is None else spread(x), batch)
