"""One exported encoder for all tests of a process that read it."""

import keras
import pytest


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A masked language model, the folder of its SavedModel, and the encoder loaded from it.

    Tests leave all three as they are.
    """
    if keras.backend.backend() != "tensorflow":
        pytest.skip("a SavedModel is TensorFlow's; the backend is another one")
    from saved_encoders import scrambled_masked_lm

    from keras_tupe import SavedEncoder
    from keras_tupe.export import export_encoder

    model, folder = scrambled_masked_lm(), tmp_path_factory.mktemp("saved") / "ours"
    export_encoder(model, folder)
    return model, folder, SavedEncoder(folder, name="reader")
