"""Raw text to documents, sentences, a vocabulary and packed tokens.

Import its names from `keras_tupe.data`.
"""
