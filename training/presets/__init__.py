"""Presets that commands start from: loaded, checked, and encoders of them put into tasks."""
