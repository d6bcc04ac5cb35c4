"""`keras-tupe query`: questions to an export, by TensorFlow alone where it holds text/."""
