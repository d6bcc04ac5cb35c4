"""Targets longer than any of training, by position method."""
