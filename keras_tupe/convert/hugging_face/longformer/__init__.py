"""Longformer of Hugging Face: its folders read, and written."""
