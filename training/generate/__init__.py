"""`keras-tupe generate`: text that a language model writes after prompts, or to sources."""
