"""`keras-tupe prepare`: raw text to rows for pre-training."""
