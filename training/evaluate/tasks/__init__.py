"""The tasks of `keras-tupe evaluate`, a file each: whatever is in this folder is one."""
