"""SQuAD v1.1: windows of passages, answers and their scores."""
