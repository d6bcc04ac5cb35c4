"""The tasks of `keras-tupe finetune`, a file each: `Settings`, and what does the work of them."""
