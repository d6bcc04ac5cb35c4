"""A whole encoder with a method: how much work it does, how long its inputs may be."""

import keras
import numpy as np

from training.check.compare import require, require_near
from training.check.method.cases import (
    MAX_LENGTH,
    encoder,
    inputs,
    outputs,
    random_ids,
    shared_encoder,
)

_FACTORIES = {"position_embedding": "embed", "position_bias": "bias"}


def check_work_is_done_once(case):
    """Checks that what a method computes is shared by all blocks, and none of it by row or pair."""
    model = encoder(case, num_layers=3)
    method, calls = case.method, []

    def spied(layer):
        call = layer.call

        def record(hidden_states, **kwargs):
            calls.append((layer.name, call(hidden_states, **kwargs)))
            return calls[-1][1]

        return record

    names = {layer.name for layer in model.layers}
    wanted = {name for name, field in _FACTORIES.items() if getattr(method, field)}
    wanted |= names & {"shared_positions"}
    for name in sorted(wanted):
        require(name in names, f"The layer of the method must be named {name!r}.")
        layer = model.get_layer(name)
        layer.call = spied(layer)
    model(inputs(random_ids(3, 7)))
    made = sorted(name for name, _ in calls)
    require(
        made == sorted(wanted),
        "The layers of a method must be called once per forward pass. "
        f"Received: calls of {made} in an encoder of three blocks.",
    )
    for name, result in calls:
        if isinstance(result, dict) and name == "position_bias":
            result = result["bias"]  # beside its parts, which have no pairs
        shapes = [tuple(x.shape) for x in keras.tree.flatten(result)]
        if name == "position_bias":
            require(
                shapes == [(1, 2, 7, 7)],
                "The bias of 2 heads and 7 tokens must have the shape (1, 2, 7, 7), whatever the "
                f"batch. Received: {shapes}.",
            )
        elif name == "shared_positions":
            require(
                all(3 not in shape and shape[:2] != (7, 7) for shape in shapes),
                "`shared` must give nothing per sequence or per pair of tokens. Received: shapes "
                f"{shapes} for 3 sequences of 7 tokens.",
            )


def check_length_limit(case):
    """Checks that a table bounds the length and nothing else does, as the record says."""
    model = shared_encoder(case)
    one_more = inputs(random_ids(2, MAX_LENGTH + 1))
    symbols = {key: keras.Input((MAX_LENGTH + 1,), dtype="int32") for key in one_more}
    if model.has_length_limit:
        for given in (one_more, symbols):
            _require_refusal(model, given)
    else:
        long = outputs(model, inputs(random_ids(2, 3 * MAX_LENGTH)))[0]
        require(
            long.shape == (2, 3 * MAX_LENGTH, 10) and np.isfinite(long).all(),
            "A method without a length limit must answer for three times max_sequence_length.",
        )
        shape = model(symbols)["sequence_output"].shape
        require(
            shape == (None, MAX_LENGTH + 1, 10),
            f"The symbolic output must have the shape of the input. Received: {shape}.",
        )
    shape = outputs(model, inputs(random_ids(2, MAX_LENGTH)))[0].shape
    require(shape == (2, MAX_LENGTH, 10), f"max_sequence_length must fit. Received: {shape}.")


def _require_refusal(model, given):
    try:
        model(given)
    except ValueError as error:
        parts = (
            f"at most max_sequence_length={MAX_LENGTH} tokens",
            "Truncate",
            f"Received: sequence length={MAX_LENGTH + 1}",
        )
        text = str(error)
        places = [text.find(part) for part in parts]
        require(
            -1 not in places and places == sorted(places),
            f"The refusal of a sequence that is too long must say {parts}. Received: {text}",
        )
        return
    require(
        False,
        "The record says has_length_limit, and a sequence longer than max_sequence_length is "
        "taken. Refuse it in `call`, as the layers of 'absolute' do.",
    )


def check_one_graph(case):
    """Checks that one TensorFlow graph serves every length, as it answers eagerly. Needs floatx."""
    import tensorflow as tf

    model = encoder(case, num_layers=1)
    spec = tf.TensorSpec((None, None), "int32")

    @tf.function(input_signature=[spec, spec])
    def serve(token_ids, padding_mask):
        return model({"token_ids": token_ids, "padding_mask": padding_mask})

    for length in (1, 2, 7, MAX_LENGTH):
        given = inputs(random_ids(3, length), lengths=[length, 1, max(1, length - 1)])
        answer = serve(**{key: tf.constant(value) for key, value in given.items()})
        got = (answer["sequence_output"].numpy(), answer["pooled_output"].numpy())
        for one, other in zip(got, outputs(model, given), strict=True):
            require_near(one, other, 1e-12, f"A graph's output of {length} tokens differs")
    traces = serve.experimental_get_tracing_count()
    require(traces == 1, f"One graph must serve all lengths. Received: {traces} graphs.")


def check_determinism(case):
    """Checks that the same seed makes the same encoder, and the same call the same answer."""
    made = []
    given = inputs(random_ids(2, 7))
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        model = encoder(case, "float32", num_layers=1, scale=None)
        made.append(outputs(model, given)[0])
        again = outputs(model, given)[0]
        require((made[-1] == again).all(), "The same call must give the same answer twice.")
    require((made[0] == made[1]).all(), "The same seed must make the same encoder.")
    require(np.abs(made[0] - made[2]).max() > 1e-3, "Another seed must make another encoder.")
