"""The promises that every layer of the package keeps, checked by one call."""

import inspect
import json

import keras
import numpy as np
from keras import ops, tree

POLICIES = ("float32", "float64", "mixed_float16", "mixed_bfloat16")


def run_layer_contract(
    kind,
    arguments,
    inputs,
    folder,
    *,
    shapes,
    num_weights,
    num_states=0,
    at_least_float32=False,
    exact=False,
    dead=(),
):
    """Checks that a layer is a good Keras citizen.

    Configuration, build, symbolic and eager calls under four precision policies, open sizes, a
    compiled training step (with XLA, which takes less than graphs without it) and a `.keras` file.

    Args:
        kind: the class.
        arguments: all constructor arguments worth setting, different from the defaults where
            possible: a dictionary, or a function of the dtype policy that returns it.
        inputs: NumPy arrays of the call arguments by name, the positional one first.
        folder: where the model is saved, the test's `tmp_path`.
        shapes: list of the shapes of the outputs, written out by hand.
        num_weights: number of trainable weights.
        num_states: number of variables that are not weights, such as the state of a generator.
        at_least_float32: whether outputs stay in float32 under a half precision policy.
        exact: whether, moreover, a half precision policy rounds nothing on the way.
        dead: ends of the paths of weights that have no gradient by mathematics.
    """

    def given(policy="float32"):
        return arguments(policy) if callable(arguments) else arguments

    def make(policy="float32"):
        return kind(**given(policy), dtype=policy, name="layer")

    check_config(make(), given())
    check_build(make(), inputs, num_weights, num_states)
    for policy in POLICIES:
        check_calls(make(policy), inputs, shapes, at_least_float32 or exact)
    if exact:
        check_nothing_is_rounded(make, inputs)
    check_compiled_step(make(), inputs, dead)
    check_saved_file(make(), inputs, folder / "model.keras")


def check_config(layer, given):
    kind, config = type(layer), layer.get_config()
    own = inspect.signature(kind.__init__).parameters.values()
    names = {one.name for one in own if one.kind == one.POSITIONAL_OR_KEYWORD} - {"self"}
    for name in names | set(given):
        assert name in config
        assert hasattr(layer, name), f"{name} is not kept under its own name"
    json.dumps(keras.saving.serialize_keras_object(layer))
    clone = kind.from_config(config)
    assert type(clone) is kind
    assert clone.get_config() == config
    assert keras.saving.get_registered_name(kind) == f"keras_tupe>{kind.__name__}"


def check_build(layer, inputs, num_weights, num_states):
    has_nothing_to_build = type(layer).build is keras.layers.Layer.build
    assert not layer.built or has_nothing_to_build
    assert layer.weights == []
    arrays = {name: value for name, value in inputs.items() if not isinstance(value, list)}
    if has_nothing_to_build:
        call(layer, inputs)
    elif len(arrays) == 1:
        layer.build(*(value.shape for value in arrays.values()))
    else:
        known = inspect.signature(type(layer).build).parameters
        shapes = {f"{name}_shape": value.shape for name, value in arrays.items()}
        layer.build(**{name: shape for name, shape in shapes.items() if name in known})
    assert layer.built
    paths = [weight.path for weight in layer.weights]
    assert len(paths) == len(set(paths)), "two weights share a path"
    assert all(path.startswith("layer/") for path in paths), paths
    assert len(layer.trainable_weights) == num_weights
    call(layer, inputs)
    assert len(layer.trainable_weights) == num_weights, "a call made weights that build did not"
    assert len(layer.variables) - len(layer.trainable_variables) == num_states


def check_calls(layer, inputs, shapes, at_least_float32):
    dtype = layer.compute_dtype
    if at_least_float32 and dtype != "float64":
        dtype = "float32"
    eager, symbolic = (tree.flatten(call(layer, x)) for x in (inputs, symbols(inputs)))
    for found in (eager, symbolic):
        assert [tuple(x.shape) for x in found] == shapes
        assert {keras.backend.standardize_dtype(x.dtype) for x in found} == {dtype}
    assert all(np.isfinite(to_float(x)).all() for x in eager)
    kept = {keras.backend.standardize_dtype(weight.dtype) for weight in layer.weights}
    assert kept <= {layer.variable_dtype, dtype}
    if layer.dtype_policy.name == "float32":
        found = tree.flatten(call(layer, symbols(inputs, are_open=True)))
        for one, shape in zip(found, shapes, strict=True):
            assert all(x in (None, known) for x, known in zip(one.shape, shape, strict=True))


def check_nothing_is_rounded(make, inputs):
    """A layer called on its own is the harder case: no model around it settles the autocasting."""
    exact, *others = [make(x) for x in ("float32", "mixed_float16", "mixed_bfloat16")]
    for layer in (exact, *others):
        call(layer, inputs)  # builds
    randomize(exact)
    expected = tree.flatten(call(exact, inputs))
    for half in others:
        for weight, value in zip(half.weights, exact.weights, strict=True):
            weight.assign(value)
        for output, wanted in zip(tree.flatten(call(half, inputs)), expected, strict=True):
            np.testing.assert_allclose(to_float(output), to_float(wanted), rtol=0, atol=1e-6)


def check_compiled_step(layer, inputs, dead):
    model, arrays = functional_model(layer, inputs), tree.flatten(inputs)
    eager = call(layer, inputs)
    if not layer.trainable_weights:
        model.compile(jit_compile=True)
        compiled = tree.flatten(model.predict_on_batch(arrays))
        for output, wanted in zip(compiled, tree.flatten(eager), strict=True):
            np.testing.assert_allclose(output, to_float(wanted), atol=1e-5)
        return
    model.compile(keras.optimizers.SGD(1.0), loss="mse", jit_compile=True)
    rng = np.random.default_rng(3)
    before = [to_float(weight) for weight in layer.trainable_weights]
    targets = tree.map_structure(lambda x: rng.normal(size=x.shape), eager)
    assert np.isfinite(model.train_on_batch(arrays, targets)).all()
    for weight, old in zip(layer.trainable_weights, before, strict=True):
        new = to_float(weight)
        assert np.isfinite(new).all(), weight.path
        if not weight.path.endswith(tuple(dead)):
            assert (new != old).any(), f"{weight.path} did not learn"


def check_saved_file(layer, inputs, path):
    model = functional_model(layer, inputs)
    randomize(layer)
    expected = tree.flatten(call(layer, inputs))
    model.save(path)
    loaded = keras.saving.load_model(path).get_layer("layer")
    assert type(loaded) is type(layer)
    # Files hold lists where layers hold tuples.
    assert json.dumps(loaded.get_config()) == json.dumps(layer.get_config())
    assert [weight.path for weight in loaded.weights] == [weight.path for weight in layer.weights]
    for output, wanted in zip(tree.flatten(call(loaded, inputs)), expected, strict=True):
        np.testing.assert_array_equal(to_float(output), to_float(wanted))


def randomize(layer):
    for weight in layer.trainable_weights:
        weight.assign(keras.random.normal(weight.shape))


def functional_model(layer, inputs):
    tensors = symbols(inputs)
    return keras.Model(tree.flatten(tensors), call(layer, tensors))


def symbols(inputs, are_open=False):
    """Returns Keras inputs of the arrays' shapes, or with batch and length left open."""
    sizes = next(iter(inputs.values())).shape[:2] if are_open else ()

    def symbol(value):
        shape = tuple(None if size in sizes else size for size in value.shape)
        return keras.Input(batch_shape=shape, dtype=str(value.dtype))

    return tree.map_structure(symbol, inputs)


def call(layer, inputs):
    first, *rest = inputs
    return layer(inputs[first], **{name: inputs[name] for name in rest})


def to_float(tensor):
    return ops.convert_to_numpy(ops.cast(tensor, "float64"))
