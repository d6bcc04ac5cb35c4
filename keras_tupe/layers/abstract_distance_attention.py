"""Base of attention layers with a table of distances."""

import abc

import keras
from keras import ops

from keras_tupe.layers._parts import unbuilt_layer
from keras_tupe.layers.abstract_self_attention import AbstractSelfAttention
from keras_tupe.layers.attention.terms import untied_cls
from keras_tupe.layers.relative_position_table import RelativePositionTable


class AbstractDistanceAttention(AbstractSelfAttention):
    """Self-attention whose logits depend on query, key and a learned vector of their distance.

    Equation, with f given by the subclass and a by `RelativePositionTable`:

        logits[h, i, j] = f(q_i, k_j, a_{j - i})

    An untied [CLS] has the same f with its own factors: row 0 and column 0 have no distance.

    A subclass is final and answers `distance_terms`, for all pairs with their distances, and
    `pair_logits`, for all pairs with one and the same factor.

    Args:
        num_heads, key_dim, dropout, kernel_initializer: as in `AbstractSelfAttention`.
        position_table: `RelativePositionTable`; `None` if one table for all layers is passed
            as `shared_positions`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments, shapes and masking are those of `AbstractSelfAttention`; `shared_positions`
    is what a `RelativePositionTable` returns. A `position_bias` is added.

    Raises:
        TypeError: if `position_table` is another kind of layer.
        ValueError: if its sizes do not fit, or a call has no table, or two.
    """

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
    def distance_terms(self, query, key, table):
        """Returns the terms of the logits, a list of `keras_tupe.layers.attention.terms.Term`.

        Args:
            query: `(num_heads, batch, length, key_dim)`.
            key: the same.
            table: `(2 k + 1, num_heads or 1, width)`, row r for distance r - k.
        """

    @abc.abstractmethod
    def pair_logits(self, query, key, factor):
        """Returns the logits with one factor for all pairs instead of that of their distance.

        Args:
            query: `(num_heads, batch, query_length, key_dim)`.
            key: `(num_heads, batch, key_length, key_dim)`.
            factor: `(num_heads or 1, width)`, for all sequences.
        """

    def table(self, hidden_states, shared_positions):
        """Returns the layer's own table or the shared one, in `logits_dtype`.

        Args:
            hidden_states: tensor whose axis 1 is the length.
            shared_positions: as in the call arguments.
        """
        if (self.position_table is None) == (shared_positions is None):
            received = "neither" if self.position_table is None else "both"
            raise ValueError(
                "The attention layer needs one table of distances: `position_table` when it is "
                f"made, or `shared_positions` when it is called. Received: {received}"
            )
        own = self.position_table
        table = own(hidden_states) if own is not None else self._own_of(shared_positions)
        return {name: ops.cast(rows, self.logits_dtype) for name, rows in table.items()}

    def _own_of(self, shared_positions):
        """Returns the rows of the layer's own heads, unless heads share a table."""
        return {
            name: rows if rows.shape[1] == 1 else self.own_heads(rows, 1)
            for name, rows in shared_positions.items()
        }

    def logit_terms(self, query, key, shared_positions):
        table = self.table(query[0], shared_positions)
        terms = self.distance_terms(query, key, table["distances"])
        if "cls" not in table:
            return terms
        factors = ops.unstack(table["cls"])
        return [*terms, untied_cls(query, key, factors, self.pair_logits)]

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

    def get_config(self):
        table = self.position_table
        return {
            **super().get_config(),
            "position_table": table and keras.saving.serialize_keras_object(table),
        }

    @classmethod
    def from_config(cls, config):
        table = config["position_table"]
        return cls(**{**config, "position_table": table and unbuilt_layer(table)})
