"""Encoders of Hugging Face with BERT's trunk: RoBERTa, MPNet and others, one record in a file."""
