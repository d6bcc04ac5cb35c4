"""Presets and `.keras` files of strangers: what is refused before anything in them is made."""
