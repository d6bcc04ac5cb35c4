"""`keras-tupe quickstart`: from raw text to an exported model, in minutes."""
