"""`keras-tupe prune`: scores and latency of a preset without some of its heads or weights."""
