"""`keras-tupe query`: questions to an export, by TensorFlow alone; `keras_tupe` is not imported."""
