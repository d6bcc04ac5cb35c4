"""An encoder and a decoder beside it: from one text to another.

For whoever translates, summarises or restores texts: `TupeSeq2SeqLM` trains on pairs and writes the
second text of a pair by itself, with `BeamSearch` if wished.
"""
