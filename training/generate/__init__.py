"""`keras-tupe generate`: text that a causal language model writes after prompts."""
