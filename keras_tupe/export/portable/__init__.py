"""Files for ONNX Runtime and LiteRT, and how far their answers are from the model's."""
