"""`keras-tupe check-method`: every promise of a positional method, checked on one Python file."""
