"""`keras-tupe probe`: small tasks whose answers depend on positions in a known way."""
