"""An exported encoder as a Keras model: its folder, its signature, what may enter it."""
