"""Folders of sentence-transformers: an encoder of Hugging Face, and how its vectors are pooled."""
