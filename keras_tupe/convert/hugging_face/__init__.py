"""BERT of Hugging Face: its folders read, and written."""
