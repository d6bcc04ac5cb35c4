"""Pairs of texts: rows, the model to start with, runs, what is written and its scores."""
