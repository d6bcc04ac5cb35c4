"""Attention on one page: a rectangle of logits, and one walk over rectangles.

Queries i stand below each other, keys j beside each other. All that is ever made is a `Block`,
`rows` queries from position `start` on by `keys` keys from position `offset` on:

        keys j ->                                                a window             next token
      +-----------+   +-----------+   +-----------+           +-----------+         +-----------+
      |###########|   |           |   |g|##       |           |globals    |         |           |
    i |###########|   |###########|   |g|####     |           +---+-------+         |           |
    | |###########|   |###########|   |g|  ####   |           | M |segment|         |###########|
    v |###########|   |           |   |g|    ####|            +---+-------+         +-----------+
      a short text    a block of a    windows beside          a segment             one row, keys
      at once         long one        global tokens           behind its memory     of a cache

A method answers what the logits of any such rectangle are, and nothing else. Shapes on the way:

    hidden states (batch, length, hidden_dim)
      | query_dense, key_dense, value_dense; heads first
    query, key, value (heads, batch, length, key_dim)
      | of_layer(shared_positions)     tables and weights that a call reads whole, once
      | prepare(query, key, ...)       rotations, running sums: trees with a row per query or key
    Parts(rows, keys, whole)
      | core.attend                    cuts rows and keys to a Block, and for each Block:
      |   logits(query, key, positions, block)   (heads, batch or 1, rows, keys), the method
      |   + position bias             a matrix, or its factors and values by distance
      |   + masks                     the pattern, asked by positions i and j; padded keys
      |   softmax, dropout            bits are a hash of seed and place, found again, never kept
      |   sums of values              (heads, batch, rows, key_dim)
    context (heads, batch, length, key_dim)
      | output_dense
    hidden states (batch, length, hidden_dim)

Texts of up to 512 tokens are one block. Longer ones are blocks of up to 256 rows, steps of a loop
or a few that the graph knows, which the backward pass makes again, so that nothing of shape
(length, length) is held. What a block computes comes from its arguments alone. Files: `block`
(rectangles and what belongs to distances), `channels` (Huang's method 3), `core` (the walk),
`segments`, `random_bits`, `position_terms` (biases by their parts).
"""
