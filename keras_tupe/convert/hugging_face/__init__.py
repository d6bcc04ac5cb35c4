"""Models of Hugging Face: their folders read, and written."""
