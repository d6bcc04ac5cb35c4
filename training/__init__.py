"""Commands, run as `keras-tupe NAME` or `python -m training.NAME`; `keras-tupe` lists them."""
