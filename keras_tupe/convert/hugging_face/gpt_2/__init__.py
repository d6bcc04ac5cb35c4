"""GPT-2 of Hugging Face: its folders read, and written."""
