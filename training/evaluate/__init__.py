"""`keras-tupe evaluate TASK PRESET...`: what presets can do without being trained for it."""
