"""BERT, whoever published it: names of weights, WordPiece, and weights put into our model."""
