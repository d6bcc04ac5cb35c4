"""Files of PyTorch, read without PyTorch and without running anything in them."""
