"""The trunk that encoders and decoders share: its settings, its layers, and who goes through them.

For whoever works on models: `config` says what a trunk is made of, `trunk` is the one way from ids
to hidden states, and `steps`, `memory`, `changes` and `pruning` use it from outside.
`keras_tupe.models` has what is public of it.
"""
