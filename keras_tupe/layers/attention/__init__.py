"""The attention core: logits by their terms, softmax, dropout and product with the values.

For the layers of attention, which say what their logits are made of: `terms` holds the kinds of
terms, `core.attend` does the rest, for all rows of a short sequence at once, for long ones in
blocks of query rows, of which nothing of shape (length, length) is kept.
"""
