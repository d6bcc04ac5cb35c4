"""Scripts, run as `python -m training.NAME`."""
