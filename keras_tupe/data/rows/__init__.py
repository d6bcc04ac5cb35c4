"""Rows of tokens: written and read, in which order, masked, and as a `tf.data` set.

Import its names from `keras_tupe.data`.
"""
