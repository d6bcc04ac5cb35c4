"""One SavedModel for all tests that only look into one; it is dear to make."""

import pytest
from made_once import made_once
from saved_cases import LENGTH, exported_model

from keras_tupe.export import export_encoder


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """The folder of a SavedModel of `exported_model()`: signatures of 5 tokens, and of any."""

    def make(folder):
        export_encoder(exported_model(), folder, length=LENGTH, dynamic_length=True)

    return made_once(tmp_path_factory, "exported", make)
