"""The record of a method is complete, and each of its functions takes its true arguments."""

import dataclasses

import keras

from keras_tupe import positions
from keras_tupe.layers import AbstractSelfAttention
from training.check_method.cases import HEADS, KEY_DIM, MAX_LENGTH, encoder
from training.check_method.compare import BrokenPromiseError, require


def check_record(case):
    """Checks the texts of a record, and that other values of each option are given to try."""
    method = case.method
    require(
        0 < len(method.summary) < 90 and "\n" not in method.summary,
        f"`summary` must be one line of 1 to 89 letters. Received: summary={method.summary!r}.",
    )
    require(bool(method.source), "`source` must name the paper and the equation.")
    varied = {key for others in method.other_options for key in others}
    missing = sorted(method.options.keys() - varied)
    require(
        not missing,
        "`other_options` must hold another value of each option, to be checked with. Received: "
        f"none for {', '.join(map(repr, missing))}.",
    )


def check_functions(case):
    """Calls every function of the record with its true arguments, and checks what it returns."""
    method, options = case.method, case.resolved()
    dims = positions.Dims(num_heads=HEADS, key_dim=KEY_DIM, max_sequence_length=MAX_LENGTH)
    layers = {
        name: factory(dims, options)
        for name in ("embed", "bias", "shared", "attention")
        if (factory := getattr(method, name))
    }
    attention = layers.pop("attention")
    require(
        isinstance(attention, AbstractSelfAttention),
        f"`attention` must return an AbstractSelfAttention. Received: {attention!r}.",
    )
    for name, layer in layers.items():
        allowed = keras.layers.Layer | (None if name == "shared" else keras.layers.Layer)
        require(isinstance(layer, allowed), f"`{name}` must return a layer. Received: {layer!r}.")
    dead = tuple(method.dead_weights(dims, options))
    require(
        all(isinstance(one, positions.DeadWeight) for one in dead),
        f"`dead_weights` must return DeadWeight records. Received: {dead!r}.",
    )
    limit = method.has_length_limit(options)
    require(
        isinstance(limit, bool),
        f"`has_length_limit` must return True or False. Received: {limit!r}.",
    )
    reason = method.refused_memory(options)
    require(isinstance(reason, str), f"`refused_memory` must return a text. Received: {reason!r}.")
    paths = [weight.path for weight in encoder(case, scale=None).weights]
    for table in method.absolute_tables:
        require(
            any(path.endswith(table) for path in paths),
            f"`absolute_tables` names {table!r}, which is no weight.",
        )


def check_unknown_options(case):
    """Checks that an option that the method does not have is refused."""
    try:
        encoder(dataclasses.replace(case, options=(*case.options, ("no_such_option", 1))))
    except ValueError:
        return
    raise BrokenPromiseError("An option that the method does not have must be refused.")
