"""The layers of a method, made without an encoder: their kinds, their weights, their docstrings."""

import dataclasses
import functools
import inspect
import re

import keras

from keras_tupe._keras_private.layers import all_layers
from keras_tupe.layers import PlainSelfAttention, UntiedPositionalAttention
from keras_tupe.models import SIZES
from keras_tupe.positions import Dims, plain_attention

LENGTH = 512
_FEW = 8  # tokens that layers are built with
# These two take what a bias gives them, and know no position themselves.
_ON_CONTENT = (PlainSelfAttention, UntiedPositionalAttention)


def dims_of(size):
    """Returns the `Dims` of a size of `SIZES`."""
    chosen = SIZES[size]
    return Dims(chosen.num_heads, chosen.hidden_dim // chosen.num_heads, LENGTH)


TINY = dims_of("tiny")


@dataclasses.dataclass(frozen=True)
class Made:
    """The layers of a method for one block; those that it does not use are `None`."""

    embed: keras.layers.Layer | None
    bias: keras.layers.Layer | None
    shared: keras.layers.Layer | None
    attention: keras.layers.Layer

    def all(self):
        """Returns the layers that there are."""
        return [layer for layer in vars(self).values() if layer is not None]


@functools.cache
def _made(factories, options, dims):
    with keras.StatelessScope(initialize_variables=False):  # shapes are enough
        found = [factory(dims, dict(options)) if factory else None for factory in factories]
        made = Made(*found)
        hidden = keras.KerasTensor((1, _FEW, dims.hidden_dim))
        hidden = made.embed(hidden) if made.embed else hidden
        given = {
            "position_bias": made.bias(hidden) if made.bias else None,
            "shared_positions": made.shared(hidden) if made.shared else None,
        }
        made.attention(hidden, **given)
    return made


def make(method, dims, options=None):
    """Returns the `Made` of a method, built; under its default options but for those given."""
    factories = (method.embed, method.bias, method.shared, method.attention)
    return _made(factories, tuple(method.resolve(options).items()), dims)


def has_own_attention(method):
    """Returns whether the attention of a method knows positions itself."""
    return type(make(method, TINY).attention) not in _ON_CONTENT


def added_parameters(method, options=None):
    """Returns what a method, with its default `options` but for those given, adds to encoders.

    Returns:
        List of (size, number of blocks, `Dims`, number of parameters).
    """
    found = []
    for size in ("tiny", "base"):
        dims, blocks = dims_of(size), SIZES[size].num_layers
        made, plain = (
            make(method, dims, options),
            _made((None, None, None, plain_attention), (), dims),
        )
        once = sum(layer.count_params() for layer in made.all() if layer is not made.attention)
        each = made.attention.count_params() - plain.attention.count_params()
        found.append((size, blocks, dims, once + blocks * each))
    return found


def differences(method):
    """Returns what the docstrings of the method's layers say about differences from the source."""
    found = []
    for layer in make(method, TINY).all():
        for part in all_layers(layer):
            text = (
                inspect.getdoc(type(part)) if type(part).__module__.startswith("keras_tupe") else ""
            )
            for whole in re.findall(r"(?ms)^Differences from .*?(?=\n\n|\Z)", text or ""):
                found.append(" ".join(whole.split()))
    return list(dict.fromkeys(found))
