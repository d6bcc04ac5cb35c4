"""What a user does wrong with a `SavedEncoder` is answered by a sentence."""

import pathlib
import re

import keras
import numpy as np
import pytest
from saved_encoders import (
    IDS,
    LENGTH,
    MASK,
    TYPES,
    rows,
    write_call,
    write_other_encoder,
)

from keras_tupe import SavedEncoder


@pytest.fixture
def encoder(saved):
    """A loaded encoder of ours, with a table that ends at `LENGTH`."""
    return saved[2]


def check_helpful(error, *parts):
    """Checks the parts of a message, and that it is sentences with the value at the end."""
    # Keras puts a line before a message from `call`, and the arguments behind it.
    message = re.sub(r"\x1b\[\d*m", "", str(error.value))
    for part in (*parts, "Received: "):
        assert part in message, message
    assert message.split("Received: ")[0].rstrip().endswith((".", "?", ")")), message


def changed(**kwargs):
    """Returns rows with other inputs; `None` leaves one out."""
    inputs = {**rows(), **kwargs}
    return {name: value for name, value in inputs.items() if value is not None}


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="for the other backends")
def test_another_backend_is_told_which_one_is_needed():
    with pytest.raises(ValueError, match="KERAS_BACKEND=tensorflow") as error:
        SavedEncoder("anywhere")
    check_helpful(error, f"backend='{keras.backend.backend()}'")


# Folders


@pytest.mark.parametrize("path", [3, None, b"folder", ["folder"]])
def test_a_path_that_is_none(tensorflow, path):
    with pytest.raises(TypeError, match="`path` must be") as error:
        SavedEncoder(path)
    check_helpful(error, f"path={path!r}")


@pytest.mark.parametrize("path", ["", "missing", pathlib.Path("missing", "folder"), __file__])
def test_a_path_to_nothing(tensorflow, path):
    with pytest.raises(ValueError, match="There is no such folder") as error:
        SavedEncoder(path)
    check_helpful(error, "export_encoder", f"path={str(path)!r}")


def test_a_handle_of_tensorflow_hub(tensorflow):
    with pytest.raises(ValueError, match="cannot read from there") as error:
        SavedEncoder("https://tfhub.dev/somebody/encoder/1")
    check_helpful(error, "`tensorflow_hub.resolve(handle)`", "path='https://")


def test_folders_with_something_else(tensorflow, tmp_path):
    (tmp_path / "config.json").touch()
    with pytest.raises(ValueError, match="holds no SavedModel") as error:
        SavedEncoder(tmp_path)
    check_helpful(error, "from_preset", "['config.json']")
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01garbage")
    with pytest.raises(ValueError, match="could not be loaded") as error:
        SavedEncoder(tmp_path)
    check_helpful(error, f"path={str(tmp_path)!r}")


def test_a_saved_model_that_has_only_signatures(tensorflow, tmp_path):
    inputs = keras.Input((None,), dtype="int32")
    outputs = keras.layers.Embedding(5, 2)(inputs)
    keras.Model(inputs, outputs).export(tmp_path / "keras", verbose=False)
    with pytest.raises(ValueError, match="cannot be called") as error:
        SavedEncoder(tmp_path / "keras")
    check_helpful(error, "only signatures", "export_encoder", "['serve', 'serving_default']")


def test_a_model_of_text(tensorflow, tmp_path):
    spec = tensorflow.TensorSpec([None], tensorflow.string, name="text")
    write_call(tmp_path / "preprocessor", lambda text: tensorflow.strings.length(text), spec)
    with pytest.raises(ValueError, match="is not a text encoder") as error:
        SavedEncoder(tmp_path / "preprocessor")
    check_helpful(error, "a dictionary of integers", f"'{IDS}'", "[string (None,)]")
    root = tensorflow.train.Checkpoint()
    serve = tensorflow.function(lambda text: {"x": text}, input_signature=[spec])
    signatures = {"embed": serve, "fill_mask": serve, "serving_default": serve}
    tensorflow.saved_model.save(root, str(tmp_path / "text"), signatures=signatures)
    with pytest.raises(ValueError, match="It takes text") as error:
        SavedEncoder(tmp_path / "text")
    check_helpful(error, "export_text_model", "export_encoder", "'fill_mask'")


def test_encoders_with_other_inputs_or_outputs(tensorflow, tmp_path):
    write_other_encoder(tmp_path / "names", keys=("token_ids", "padding_mask"))
    with pytest.raises(ValueError, match="is not a text encoder") as error:
        SavedEncoder(tmp_path / "names")
    check_helpful(error, f"the keys ['{MASK}', '{IDS}']", "'token_ids': int32 (None, None)")
    ids = tensorflow.TensorSpec([None, None], tensorflow.int32)
    spec = {IDS: ids, MASK: ids}
    write_call(tmp_path / "one", lambda inputs: {"pooled_output": inputs[IDS]}, spec)
    with pytest.raises(ValueError, match="is not a text encoder") as error:
        SavedEncoder(tmp_path / "one")
    check_helpful(error, "['pooled_output', 'sequence_output']", "returns {'pooled_output': int32")


def test_a_masked_language_model_that_is_none(tensorflow, tmp_path):
    write_other_encoder(tmp_path / "other")
    with pytest.raises(ValueError, match="no masked language model") as error:
        SavedEncoder(tmp_path / "other", mlm=True)
    check_helpful(error, "`TupeMaskedLM`", "path=")


def test_lengths_of_an_encoder_for_one_length(tensorflow, tmp_path):
    write_other_encoder(tmp_path / "five", length=5, has_training=False)
    encoder = SavedEncoder(tmp_path / "five")
    assert encoder(rows(length=5), training=True)["sequence_output"].shape == (6, 5, 4)
    with pytest.raises(ValueError, match=r"rows of \[5\] tokens") as error:
        encoder(rows(length=4))
    check_helpful(error, "Received: length=4")


# Calls


def test_lengths_above_the_table(encoder, tensorflow):
    with pytest.raises(ValueError, match="at most max_sequence_length=7") as error:
        encoder(rows(length=LENGTH + 1))
    check_helpful(error, "Truncate", "`keras_tupe.extend_positions`", "length=8")
    with pytest.raises(ValueError, match="at most max_sequence_length=7"):
        encoder({name: keras.Input((LENGTH + 1,), dtype="int32") for name in rows()})
    with pytest.raises(ValueError, match="at most max_sequence_length=7"):
        tensorflow.function(encoder)(rows(length=LENGTH + 1))
    with pytest.raises(ValueError, match="at least one token") as error:
        encoder({name: value[:, :0] for name, value in rows().items()})
    check_helpful(error, "length=0")


@pytest.mark.parametrize("name", [IDS, MASK, TYPES])
@pytest.mark.parametrize("kind", ["float", "string", "bool"])
def test_inputs_that_are_no_integers(encoder, name, kind):
    if (name, kind) == (MASK, "bool"):
        return
    value = {
        "float": rows()[name] + 0.5,
        "string": np.full((6, LENGTH), "word"),
        "bool": rows()[name] > 0,
    }[kind]
    with pytest.raises(TypeError, match=f"`{name}` must hold integers") as error:
        encoder(changed(**{name: value}))
    check_helpful(error, "Cast it to int32", f"{name} of dtype {kind}")


def test_keras_inputs_that_hold_floats(encoder):
    with pytest.raises(TypeError, match="in a `keras.Input` too"):
        encoder({name: keras.Input((None,)) for name in rows()})


@pytest.mark.parametrize(
    "inputs",
    [
        changed(**{IDS: None}),
        changed(**{MASK: None}),
        changed(input_types_ids=rows()[TYPES]),
        changed(masked_lm_positions=rows()[IDS]),
        rows()[IDS],
        tuple(rows().values()),
    ],
)
def test_inputs_that_are_missing_or_unknown(encoder, inputs):
    with pytest.raises(ValueError, match="takes a dictionary with the keys") as error:
        encoder(inputs)
    check_helpful(error, f"['{MASK}', '{IDS}']", f"'{TYPES}' may be left out")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (MASK, rows()[MASK][:, :3]),
        (MASK, rows()[MASK][:2]),
        (TYPES, rows()[TYPES][0]),
        (IDS, rows()[IDS][0]),
        (IDS, rows()[IDS][None]),
    ],
)
def test_shapes_that_do_not_fit(encoder, name, value):
    with pytest.raises(ValueError, match=r"must have the shape \(batch, length\)") as error:
        encoder(changed(**{name: value}))
    check_helpful(error, f"{value.shape}")


def test_rows_of_different_lengths(encoder, tensorflow):
    ragged = tensorflow.RaggedTensor.from_tensor(rows()[IDS])
    with pytest.raises(TypeError, match="Pad rows of different lengths") as error:
        encoder(changed(**{IDS: ragged}))
    check_helpful(error, "RaggedTensor")


@pytest.mark.parametrize(("name", "size"), [(IDS, 23), (TYPES, 2)])
@pytest.mark.parametrize("beyond", [-1, 0])
def test_ids_outside_their_table(encoder, name, size, beyond):
    value = np.array(rows()[name])
    value[1, 2] = beyond if beyond < 0 else size
    with pytest.raises(ValueError, match=rf"`{name}` must lie in \[0, {size}\)") as error:
        encoder(changed(**{name: value}))
    check_helpful(error, "another model", f"{name}={value[1, 2]}")
