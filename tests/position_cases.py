"""Every positional method with its options, ready to be compared with its oracle."""

import dataclasses
import functools

import numpy as np
from keras import ops

from keras_tupe import positions
from keras_tupe.models import TupeBackbone

# What to set beside the defaults. Values of one entry go together.
OTHER_OPTIONS = (
    {"variant": "released"},
    {"cls": "untied"},
    {"cls": "tied"},
    {"num_buckets": 8, "max_distance": 11},
    {"max_distance": 11},
    {"k": 3},
    {"share_heads": True},
    {"share_layers": True},
    {"initializer": "zeros"},
    {"use_biases": False},
    {"rank": 3},
)

# Different primes, so that no transposed axis passes by luck.
BATCH, HEADS, KEY_DIM, MAX_LENGTH = 3, 2, 5, 17
WIDTH = HEADS * KEY_DIM


@dataclasses.dataclass(frozen=True)
class Case:
    """A method under some options; `str` makes the test id."""

    name: str
    options: tuple = ()

    @property
    def method(self):
        return positions.METHODS[self.name]

    def resolved(self):
        return self.method.resolve(dict(self.options))

    def __str__(self):
        return "-".join([self.name, *(f"{value}" for _, value in self.options)])


def cases_of(name):
    """Returns the method under its defaults, and with other options.

    These are set one at a time, then each with the other value of `cls`, then all at once.
    """
    defaults = dict(positions.METHODS[name].options)
    fitting = [
        other
        for other in OTHER_OPTIONS
        if other.keys() <= defaults.keys() and other.items() - defaults.items()
    ]
    other_cls = [other for other in fitting if "cls" in other]
    rest = [other for other in fitting if "cls" not in other]
    combinations = [
        (),
        *((other,) for other in fitting),
        *((other, cls) for other in rest for cls in other_cls),
        fitting,
    ]
    options = (
        {key: value for other in combination for key, value in other.items()}
        for combination in combinations
    )
    return list(dict.fromkeys(Case(name, tuple(sorted(found.items()))) for found in options))


METHOD_NAMES = sorted(positions.METHODS)
CASES = [case for name in METHOD_NAMES for case in cases_of(name)]
# Whole encoders: every method as it is, the variant that converted checkpoints use, and tables that
# all layers share.
ENCODER_OPTIONS = ((), (("variant", "released"),), (("share_layers", True),))
ENCODER_CASES = [case for case in CASES if case.options in ENCODER_OPTIONS]


def scramble(weights, seed=0, scale=0.4):
    """Gives every weight random values: zeros and ones hide sign, index and transpose errors."""
    rng = np.random.default_rng(seed)
    for weight in weights:
        center = 1.0 if weight.path.endswith("gamma") else 0.0
        weight.assign(rng.normal(center, scale, size=weight.shape))


class MethodLayers:
    """The layers of a method for one attention layer, as an encoder makes them."""

    def __init__(self, case, dtype, max_length=MAX_LENGTH):
        self.dims = positions.Dims(HEADS, KEY_DIM, max_length, dtype=dtype)
        self.options = case.resolved()
        self.method, self.dtype = case.method, dtype
        factories = (self.method.embed, self.method.bias, self.method.shared)
        self.embed, self.bias, self.shared = (
            factory(self.dims, self.options) if factory else None for factory in factories
        )
        self.attention = self.method.attention(self.dims, self.options)
        self.run(np.zeros((1, 1, WIDTH)))  # builds
        made = (self.embed, self.bias, self.shared, self.attention)
        self.weights = [weight for layer in made if layer for weight in layer.weights]
        scramble(self.weights)

    def run(self, tokens, padding_mask=None):
        """Returns attention logits, scores and output for `(batch, length, width)` vectors."""
        x = ops.convert_to_tensor(tokens, dtype=self.dtype)
        x = self.embed(x) if self.embed else x
        bias = self.bias(x) if self.bias else None
        shared = self.shared(x) if self.shared else None
        given = {"position_bias": bias, "shared_positions": shared, "padding_mask": padding_mask}
        output = self.attention(x, **given)
        query, key = self.attention.query_dense(x), self.attention.key_dense(x)
        logits = self.attention.logits(query, key, bias, shared)
        scores = self.attention.scores(x, **given)
        return tuple(ops.convert_to_numpy(tensor) for tensor in (logits, scores, output))

    def oracle(self, tokens):
        """Returns the logits that the paper's equation gives, one sequence after the other."""
        values = {weight.path: ops.convert_to_numpy(weight) for weight in self.weights}
        values = {path: value.astype("float64") for path, value in values.items()}
        return np.stack(
            [self.method.logits_oracle(x, values, self.dims, self.options) for x in tokens]
        )


@functools.cache
def method_layers(case, dtype, max_length=MAX_LENGTH):
    """Returns the layers, made once; nobody changes their weights."""
    return MethodLayers(case, dtype, max_length)


VOCABULARY = 23


def encoder(case, dtype="float64", scale=0.4, **kwargs):
    """Returns a small backbone with the method and scrambled weights."""
    settings = {"num_layers": 2, "dropout": 0.0, "max_sequence_length": MAX_LENGTH, **kwargs}
    model = TupeBackbone(
        VOCABULARY,
        num_heads=HEADS,
        hidden_dim=WIDTH,
        intermediate_dim=13,
        position=case.name,
        position_options=dict(case.options),
        dtype=dtype,
        **settings,
    )
    if scale:
        scramble(model.weights, scale=scale)
    return model


@functools.cache
def shared_encoder(case, dtype="float64"):
    """Returns an encoder made once; nobody changes its weights."""
    return encoder(case, dtype)


def random_ids(batch, length, seed=0):
    return np.random.default_rng(seed).integers(0, VOCABULARY, size=(batch, length))


def inputs(token_ids, lengths=None):
    """Returns the model's inputs; of row b the first `lengths[b]` tokens are real."""
    token_ids = np.asarray(token_ids, "int32")
    mask = np.ones_like(token_ids)
    if lengths is not None:
        mask = (np.arange(token_ids.shape[1]) < np.asarray(lengths)[:, None]).astype("int32")
    return {"token_ids": token_ids, "padding_mask": mask}


def outputs(model, given, dtype="float64"):
    """Returns sequence and pooled output of an eager call as arrays."""
    answer = model(given)
    return tuple(
        ops.convert_to_numpy(ops.cast(answer[name], dtype))
        for name in ("sequence_output", "pooled_output")
    )
