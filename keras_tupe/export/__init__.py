"""SavedModels for serving and reuse. TensorFlow only."""

from keras_tupe.export._folders import check_destination, new_folder
from keras_tupe.export.card import write_card
from keras_tupe.export.encoder import export_encoder
from keras_tupe.export.text_model import export_text_model

__all__ = ["check_destination", "export_encoder", "export_text_model", "new_folder", "write_card"]
