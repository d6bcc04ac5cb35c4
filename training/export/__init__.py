"""`keras-tupe export`: a preset as a SavedModel, or as a file of ONNX or LiteRT."""
