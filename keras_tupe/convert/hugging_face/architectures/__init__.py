"""The architectures of Hugging Face, one in a file, which is called as their `model_type`.

A file fills the record `Converter` under `CONVERTER`; reading, writing, the commands and the tests
follow from it.
"""

from keras_tupe._registry import Registry
from keras_tupe.convert.hugging_face.converter import Converter

REGISTRY = Registry(__name__, __path__, Converter, "converter", "model_type", "converter")
CONVERTERS = REGISTRY.records
