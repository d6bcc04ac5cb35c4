"""SavedModels for serving and reuse, and files for other runtimes. TensorFlow only.

For whoever hands a trained model on: to a server, to programs without this package, to ONNX Runtime
or to LiteRT. `training.export` does the same from a command line.
"""

from keras_tupe.export._folders import check_destination, replaceable_folder
from keras_tupe.export.card import write_card
from keras_tupe.export.encoder import export_encoder
from keras_tupe.export.generator import export_generator
from keras_tupe.export.portable.difference import portable_difference
from keras_tupe.export.portable.litert import export_litert
from keras_tupe.export.portable.onnx import export_onnx
from keras_tupe.export.preprocessor import export_preprocessor
from keras_tupe.export.seq2seq import export_seq2seq
from keras_tupe.export.text_model import export_text_model

__all__ = [
    "check_destination",
    "export_encoder",
    "export_generator",
    "export_litert",
    "export_onnx",
    "export_preprocessor",
    "export_seq2seq",
    "export_text_model",
    "portable_difference",
    "replaceable_folder",
    "write_card",
]
