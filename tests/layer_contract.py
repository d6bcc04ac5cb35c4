"""The promises that every layer of the package keeps, checked by one call."""

import inspect
import json

import keras
import numpy as np
from keras import ops, tree

POLICIES = ("float32", "float64", "mixed_float16", "mixed_bfloat16")


def run_layer_contract(
    layer_class,
    init_kwargs,
    inputs,
    *,
    output_shape,
    num_weights,
    folder,
    at_least_float32=False,
    is_position_term=False,
    dead_weights=(),
    num_states=0,
):
    """Checks that a layer is a good Keras citizen.

    Config round trip, build, symbolic call, eager call, a compiled training step (with XLA, which
    takes less than graphs without it), four precision policies, weight count and a `.keras` round
    trip.

    Args:
        layer_class: the class.
        init_kwargs: dtype policy -> dictionary of all constructor arguments worth setting,
            different from the defaults where possible.
        inputs: NumPy arrays of the call arguments by name, the positional one first.
        output_shape: expected shape, or list of shapes, written out by hand.
        num_weights: number of trainable weights.
        folder: where the model is saved, the test's `tmp_path`.
        at_least_float32: whether outputs stay in float32 under a half precision policy.
        is_position_term: whether, moreover, a half precision policy rounds nothing on the way.
        dead_weights: ends of the paths of weights that have no gradient by mathematics.
        num_states: number of variables that are not weights, such as the state of a generator.
    """

    def make(policy="float32"):
        return layer_class(**init_kwargs(policy), dtype=policy, name="layer")

    check_config(make)
    check_build(make(), inputs, num_weights, num_states)
    for policy in POLICIES:
        check_calls(make(policy), inputs, output_shape, at_least_float32 or is_position_term)
    check_open_sizes(make(), inputs, output_shape)
    if is_position_term:
        check_nothing_is_rounded(make, inputs)
    check_compiled_step(make(), inputs, dead_weights)
    check_saved_file(make(), inputs, folder / "model.keras")


def check_config(make):
    layer = make()
    config = layer.get_config()
    for name in constructor_arguments(type(layer)):
        assert name in config, f"the argument {name} is not in the configuration"
        assert hasattr(layer, name), f"the argument {name} is not kept under its own name"
    json.dumps(keras.saving.serialize_keras_object(layer))
    clone = type(layer).from_config(config)
    assert type(clone) is type(layer)
    assert clone.get_config() == config
    registered = keras.saving.get_registered_name(type(layer))
    assert registered == f"keras_tupe>{type(layer).__name__}"


def constructor_arguments(layer_class):
    """Returns the names of the constructor's own arguments."""
    parameters = inspect.signature(layer_class.__init__).parameters.values()
    return [p.name for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD and p.name != "self"]


def check_build(layer, inputs, num_weights, num_states):
    assert not layer.built or type(layer).build is keras.layers.Layer.build
    assert layer.weights == []
    shapes = {
        f"{name}_shape": value.shape
        for name, value in inputs.items()
        if not isinstance(value, list)
    }
    if type(layer).build is keras.layers.Layer.build:
        call(layer, inputs)  # nothing to build
    elif len(shapes) == 1:
        layer.build(*shapes.values())
    else:
        known = inspect.signature(type(layer).build).parameters
        layer.build(**{name: shape for name, shape in shapes.items() if name in known})
    assert layer.built
    paths = [weight.path for weight in layer.weights]
    assert len(paths) == len(set(paths)), "two weights share a path"
    assert all(path.startswith("layer/") for path in paths), paths
    assert len(layer.trainable_weights) == num_weights
    call(layer, inputs)
    assert len(layer.trainable_weights) == num_weights, "a call made weights that build did not"
    assert len(layer.variables) - len(layer.trainable_variables) == num_states


def check_calls(layer, inputs, output_shape, at_least_float32):
    eager = tree.flatten(call(layer, inputs))
    expected = output_shape if isinstance(output_shape, list) else [output_shape]
    assert [tuple(output.shape) for output in eager] == expected
    dtype = layer.compute_dtype
    if at_least_float32 and dtype != "float64":
        dtype = "float32"
    assert [keras.backend.standardize_dtype(output.dtype) for output in eager] == [dtype] * len(
        eager
    )
    assert all(np.isfinite(to_float(output)).all() for output in eager)
    for weight in layer.weights:
        assert keras.backend.standardize_dtype(weight.dtype) in (layer.variable_dtype, dtype)
    symbolic = tree.flatten(call(layer, symbolic_inputs(inputs)))
    assert [output.shape for output in symbolic] == expected
    assert [output.dtype for output in symbolic] == [dtype] * len(eager)


def check_open_sizes(layer, inputs, output_shape):
    call(layer, inputs)  # builds
    expected = output_shape if isinstance(output_shape, list) else [output_shape]
    dynamic = tree.flatten(call(layer, symbolic_inputs(inputs, static=False)))
    for output, shape in zip(dynamic, expected, strict=True):
        assert len(output.shape) == len(shape)
        assert all(size in (None, known) for size, known in zip(output.shape, shape, strict=True))


def check_nothing_is_rounded(make, inputs):
    """A layer called on its own is the harder case: no model around it settles the autocasting."""
    exact = make("float32")
    call(exact, inputs)
    for weight in exact.weights:
        weight.assign(keras.random.normal(weight.shape))
    expected = tree.flatten(call(exact, inputs))
    for policy in ("mixed_float16", "mixed_bfloat16"):
        half = make(policy)
        call(half, inputs)
        for weight, value in zip(half.weights, exact.weights, strict=True):
            weight.assign(value)
        for output, wanted in zip(tree.flatten(call(half, inputs)), expected, strict=True):
            np.testing.assert_allclose(to_float(output), to_float(wanted), rtol=0, atol=1e-6)


def check_compiled_step(layer, inputs, dead_weights):
    model = functional_model(layer, inputs)
    arrays = tree.flatten(inputs)
    if not layer.trainable_weights:
        model.compile(jit_compile=True)
        compiled = tree.flatten(model.predict_on_batch(arrays))
        for output, wanted in zip(compiled, tree.flatten(call(layer, inputs)), strict=True):
            np.testing.assert_allclose(output, to_float(wanted), atol=1e-5)
        return
    model.compile(keras.optimizers.SGD(1.0), loss="mse", jit_compile=True)
    rng = np.random.default_rng(3)
    before = [to_float(weight) for weight in layer.trainable_weights]
    targets = tree.map_structure(lambda x: rng.normal(size=x.shape), call(layer, inputs))
    assert np.isfinite(model.train_on_batch(arrays, targets)).all()
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        new = to_float(weight)
        assert np.isfinite(new).all(), weight.path
        if not weight.path.endswith(tuple(dead_weights)):
            assert (new != old).any(), f"{weight.path} did not learn"


def check_saved_file(layer, inputs, path):
    model = functional_model(layer, inputs)
    for weight in layer.trainable_weights:
        weight.assign(keras.random.normal(weight.shape))
    expected = tree.flatten(call(layer, inputs))
    model.save(path)
    loaded = keras.saving.load_model(path).get_layer("layer")
    assert type(loaded) is type(layer)
    # Files hold lists where layers hold tuples.
    assert json.dumps(loaded.get_config()) == json.dumps(layer.get_config())
    assert [weight.path for weight in loaded.weights] == [weight.path for weight in layer.weights]
    for output, wanted in zip(tree.flatten(call(loaded, inputs)), expected, strict=True):
        np.testing.assert_array_equal(to_float(output), to_float(wanted))


def functional_model(layer, inputs):
    tensors = symbolic_inputs(inputs)
    return keras.Model(tree.flatten(tensors), call(layer, tensors))


def symbolic_inputs(inputs, static=True):
    """Returns Keras inputs of the arrays' shapes, or with batch and length left open."""

    def symbol(name, value):
        if isinstance(value, list):
            return [symbol(f"{name}_{index}", item) for index, item in enumerate(value)]
        shape = value.shape
        if not static:
            sizes = {inputs[next(iter(inputs))].shape[axis] for axis in (0, 1)}
            shape = tuple(None if size in sizes else size for size in shape)
        return keras.Input(batch_shape=shape, dtype=str(value.dtype), name=name)

    return {name: symbol(name, value) for name, value in inputs.items()}


def call(layer, inputs):
    first, *rest = inputs
    return layer(inputs[first], **{name: inputs[name] for name in rest})


def to_float(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float64"))
