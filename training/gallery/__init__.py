"""`keras-tupe gallery`: every method, trained for a short time and drawn."""
