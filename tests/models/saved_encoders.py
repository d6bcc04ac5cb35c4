"""Encoders as SavedModels to load: ours, and small ones as another library could have written."""

import keras
import numpy as np

LENGTH, VOCABULARY, WIDTH = 7, 23, 6
IDS, MASK, TYPES = "input_word_ids", "input_mask", "input_type_ids"


def scrambled_masked_lm(**kwargs):
    """Returns a small model with random numbers added to all weights.

    With one block, of which only [CLS] is pooled, an untied [CLS] would learn nothing of places.
    """
    import keras_tupe

    sizes = {"max_sequence_length": LENGTH, "num_segments": 2, "dropout": 0.1, **kwargs}
    model = keras_tupe.TupeMaskedLM(
        keras_tupe.TupeBackbone(VOCABULARY, 2, 2, WIDTH, 11, **sizes), name="masked_lm"
    )
    generator = np.random.default_rng(5)
    for variable in model.trainable_variables:
        variable.assign_add(generator.normal(size=variable.shape) * 0.4)
    return model


def rows(batch=6, length=LENGTH):
    """Returns the inputs of a batch, NumPy's int64, with padding and two segments."""
    generator = np.random.default_rng(7)
    is_real = (
        np.arange(length)
        < np.array([length, *generator.integers(1, length + 1, batch - 1)])[:, None]
    )
    return {
        IDS: generator.integers(1, VOCABULARY, (batch, length)) * is_real,
        MASK: is_real.astype("int64"),
        TYPES: generator.integers(0, 2, (batch, length)) * is_real,
    }


def labels(batch=6):
    """Returns what there is to learn: whether the first token is from the upper half."""
    return (rows(batch)[IDS][:, 0] > VOCABULARY // 2).astype("int64")


def classifier(encoder, names=(IDS, MASK, TYPES)):
    """Returns a functional model: an encoder and a layer that chooses between two classes."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    pooled = encoder(inputs)["pooled_output"]
    return keras.Model(inputs, keras.layers.Dense(2, name="classes")(pooled))


def fit(model, optimizer, inputs, epochs=4, **kwargs):
    """Trains; returns the loss before and after, and the paths of weights that did not change."""
    old = [keras.ops.convert_to_numpy(weight) for weight in model.trainable_weights]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    before = float(loss(labels(), model(inputs)))
    model.compile(optimizer, loss, **kwargs)
    model.fit(inputs, labels(), batch_size=6, epochs=epochs, verbose=0)
    pairs = zip(model.trainable_weights, old, strict=True)
    same = [weight.path for weight, value in pairs if np.array_equal(weight, value)]
    return before, float(loss(labels(), model(inputs))), same


def write_other_encoder(
    folder, length=None, has_training=True, has_losses=True, keys=(IDS, MASK, TYPES)
):
    """Writes a bag of words with TF Hub's interface, as another library could have written it.

    It returns `encoder_outputs`, a list, as TensorFlow's Model Garden does; in training its
    outputs are halved; unless told otherwise it has one regularization loss, of its kernel.
    """
    import tensorflow as tf

    generator = np.random.default_rng(3)
    root = tf.train.Checkpoint()
    root.table = tf.Variable(generator.normal(size=(VOCABULARY, 4)), dtype=tf.float32, name="table")
    root.kernel = tf.Variable(generator.normal(size=(4, 4)), dtype=tf.float32, name="dense/kernel")
    root.calls = tf.Variable(0, trainable=False, name="table")  # a name twice

    def encode(inputs, training):
        x = tf.gather(root.table, inputs[keys[0]])
        x *= tf.cast(inputs[keys[1]], tf.float32)[..., None]
        y = tf.tanh(x @ root.kernel) * (0.5 if training else 1.0)
        pooled = tf.reduce_sum(y, axis=1)
        outputs = {"sequence_output": y, "pooled_output": pooled, "default": tf.identity(pooled)}
        return {**outputs, "encoder_outputs": [x, y]}

    if has_training:
        call = tf.function(lambda inputs, training=False: encode(inputs, training), autograph=False)
    else:
        call = tf.function(lambda inputs: encode(inputs, False), autograph=False)
    specs = {name: tf.TensorSpec([None, length], tf.int32, name=name) for name in keys}
    for training in (False, True) if has_training else ():
        call.get_concrete_function(specs, training=training)
    call.get_concrete_function(specs)
    root.__call__ = call
    root.variables = [root.table, root.kernel, root.calls]
    root.trainable_variables = [root.table, root.kernel]
    if has_losses:
        root.regularization_losses = [
            tf.function(lambda: 0.1 * tf.reduce_sum(root.kernel**2), input_signature=[])
        ]
    tf.saved_model.save(root, str(folder))


def write_call(folder, function, spec):
    """Writes a SavedModel of one function."""
    import tensorflow as tf

    root = tf.train.Checkpoint()
    root.__call__ = tf.function(function, input_signature=[spec], autograph=False)
    tf.saved_model.save(root, str(folder))
