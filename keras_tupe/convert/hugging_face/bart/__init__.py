"""Hugging Face's BART, both ways: an encoder and a decoder beside it."""
