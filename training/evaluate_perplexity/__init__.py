"""`keras-tupe evaluate_perplexity`: how well a causal preset predicts text, by position."""
