"""Base of attention layers with a table of distances."""

import abc

from keras import ops

from keras_tupe.layers._checks import checked_length
from keras_tupe.layers.abstract_self_attention import AbstractSelfAttention
from keras_tupe.layers.attention.block import untied
from keras_tupe.layers.relative_position_table import RelativePositionTable


class AbstractDistanceAttention(AbstractSelfAttention):
    """Self-attention whose logits depend on query, key and a learned vector of their distance.

    Equation, with f given by the subclass and a by `RelativePositionTable`:

        logits[h, i, j] = f(q_i, k_j, a_{j - i})

    An untied [CLS] has the same f with its own factors: row 0 and column 0 have no distance.

    A subclass is final and answers `distance_logits`, for pairs with their distances, and
    `pair_logits`, for pairs that all have one and the same factor.

    Args:
        num_heads, key_dim, **kwargs: as in `AbstractSelfAttention`.
        position_table: `RelativePositionTable`; `None` if one table for all layers is passed
            as `shared_positions`, which is what a `RelativePositionTable` returns.

    All else is as in `AbstractSelfAttention`. A `position_bias` is added.
    """

    unrolls_blocks = True
    distance_tables = ("distances",)

    def __init__(self, num_heads, key_dim, position_table=None, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.position_table = position_table
        if position_table is not None:
            self._check_table(position_table)

    def build(self, hidden_states_shape):
        super().build(hidden_states_shape)
        if self.position_table is not None:
            self.position_table.build(hidden_states_shape)

    @property
    def table_widths(self):
        """Widths that a table may have."""
        return (self.key_dim,)

    @abc.abstractmethod
    def distance_logits(self, query, key, table, block):
        """Returns the logits of a `block`, `(num_heads, batch, rows, keys)`.

        `query` and `key` are as of `logits`; the `table` has factors by distance, `(num_heads or 1,
        width, 2 k + 1)`, for `keras_tupe.layers.query_distances` and the like.
        """

    @abc.abstractmethod
    def pair_logits(self, query, key, factor):
        """Returns the logits of `query` and `key` with one `factor` for all pairs.

        It is `(num_heads or 1, width)`.
        """

    def of_layer(self, shared_positions):
        if (self.position_table is None) == (shared_positions is None):
            received = "neither" if self.position_table is None else "both"
            raise ValueError(
                "The attention layer needs one table of distances: `position_table` when it is "
                f"made, or `shared_positions` when it is called. Received: {received}"
            )
        table = self.position_table.rows() if self.position_table else shared_positions
        table = {name: ops.cast(x, self.logits_dtype) for name, x in table.items()}
        if self.position_table is None and table["distances"].shape[1] != 1:
            table = {name: self.own_heads(x, 1) for name, x in table.items()}
        return {**table, "distances": ops.transpose(table["distances"], (1, 2, 0))}

    def prepare(self, query, key, positions, block, is_real=None):
        if self.position_table is not None and not self.position_table.clip:
            checked_length(key[0], self.position_table.max_distance + 1, self.position_table.name)
        return query, key

    def logits(self, query, key, positions, block):
        logits = self.distance_logits(query, key, positions["distances"], block)
        if "cls" not in positions:
            return logits
        factors = [(factor,) for factor in ops.unstack(positions["cls"])]
        return untied(logits, query, key, block, self.pair_logits, factors)

    def compute_output_spec(self, hidden_states, *args, **kwargs):
        if self.position_table is not None and self.segments is None:
            self.position_table.compute_output_spec(hidden_states)  # refuses a length
        return super().compute_output_spec(hidden_states, *args, **kwargs)

    def _check_table(self, table):
        if not isinstance(table, RelativePositionTable):
            raise TypeError(
                "`position_table` must be a `keras_tupe.layers.RelativePositionTable`, or None if "
                f"a table is passed as `shared_positions`. Received: position_table={table!r}"
            )
        if table.num_heads not in (1, self.num_heads) or table.width not in self.table_widths:
            raise ValueError(
                f"`position_table` must have num_heads=1 or {self.num_heads}, and a width of "
                f"{' or '.join(map(str, self.table_widths))}. Received: position_table with "
                f"num_heads={table.num_heads}, width={table.width}"
            )
