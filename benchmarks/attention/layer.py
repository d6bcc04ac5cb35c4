"""One attention layer as an encoder calls it, and a step: its forward and backward pass."""

import keras
import numpy as np

from keras_tupe import TupeBackbone
from keras_tupe.layers import Dropout, EncoderBlock, TokenEmbedding
from keras_tupe.positions import get

DROPOUT = 0.1
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
PROJECTIONS = "projections only"


def attention_model(position, options, job):
    """Returns a model of one attention layer: hidden states and padding mask -> hidden states.

    Its inputs have the names of the encoder's; hidden states come as `token_ids`.

    It is an encoder of one block, made by its own code, of which only what makes position biases
    and shared positions is left, and of the block its attention, with the block's arguments.

    Args:
        position: name of a method, or `PROJECTIONS`: four dense layers, of query, key, value and
            output, and nothing between them.
        options: its `position_options`.
        job: dictionary with `heads`, `head_dim`, `length` and `precision`.
    """
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(POLICIES[job["precision"]])
    width = job["heads"] * job["head_dim"]
    dtype = keras.config.dtype_policy().compute_dtype
    inputs = {
        "token_ids": keras.Input((None, width), dtype=dtype, name="token_ids"),
        "padding_mask": keras.Input((None,), dtype="int32", name="padding_mask"),
    }
    if position == PROJECTIONS:
        return keras.Model(inputs, _projections(inputs["token_ids"], width))
    backbone = TupeBackbone(
        vocabulary_size=2,
        num_layers=1,
        num_heads=job["heads"],
        hidden_dim=width,
        intermediate_dim=1,
        position=position,
        position_options=options,
        dropout=DROPOUT,
        max_sequence_length=job["length"],
    )
    embeds = "position_embedding" if get(position).embed else None

    def called(layer, hidden_states, *args, **kwargs):
        if isinstance(layer, EncoderBlock):
            return layer.attention(hidden_states, *args, **kwargs)
        left_out = (TokenEmbedding, keras.layers.LayerNormalization, Dropout)
        if isinstance(layer, left_out) or layer.name == embeds:
            return hidden_states
        return layer(hidden_states, *args, **kwargs)

    encoder = keras.Model(backbone.input, backbone.output["sequence_output"])
    return keras.models.clone_model(
        encoder,
        input_tensors=inputs,
        clone_function=lambda layer: layer,
        call_function=called,
    )


def _projections(hidden_states, width):
    query, key, value = (keras.layers.Dense(width)(hidden_states) for _ in range(3))
    return keras.layers.Dense(width)(query + key + value)


def step_of(model, batch_size, length, xla=False):
    """Returns a function without arguments: forward and backward pass, done when it returns.

    Gradients are those of all weights and of the hidden states, for random gradients of the
    outputs. Dropout drops; there is no padding, but a padding mask. Shapes are known.

    Args:
        model: what `attention_model` returns.
        batch_size: number of sequences.
        length: tokens of each.
        xla: whether XLA compiles it on TensorFlow.
    """
    generator = np.random.default_rng(0)
    hidden_states = model.input["token_ids"]
    shape = (batch_size, length, hidden_states.shape[-1])
    hidden, gradient = (
        keras.ops.cast(generator.standard_normal(shape, "float32"), hidden_states.dtype)
        for _ in range(2)
    )
    mask = keras.ops.ones((batch_size, length), "int32")

    def inputs(hidden):
        return {"token_ids": hidden, "padding_mask": mask}

    if keras.backend.backend() == "jax":
        return _jax_step(model, inputs, hidden, gradient)
    return _tensorflow_step(model, inputs, hidden, gradient, xla)


def _tensorflow_step(model, inputs, hidden, gradient, xla):
    import tensorflow as tf

    weights = [variable.value for variable in model.trainable_variables]

    @tf.function(jit_compile=xla)
    def gradients(hidden, gradient):
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            outputs = model(inputs(hidden), training=True)
        found = tape.gradient(outputs, [hidden, *weights], output_gradients=gradient)
        return [one for one in found if one is not None]

    return lambda: gradients(hidden, gradient)[0].numpy()


def _jax_step(model, inputs, hidden, gradient):
    import jax

    trainable = [variable.value for variable in model.trainable_variables]
    state = [variable.value for variable in model.non_trainable_variables]

    @jax.jit
    def gradients(trainable, hidden, gradient):
        def outputs(trainable, hidden):
            return model.stateless_call(trainable, state, inputs(hidden), training=True)[0]

        return jax.vjp(outputs, trainable, hidden)[1](gradient)

    return lambda: jax.block_until_ready(gradients(trainable, hidden, gradient))
