"""`keras-tupe draw`: pictures of what positional methods do."""
