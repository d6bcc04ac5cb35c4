"""`keras-tupe check FILE`: every promise of a positional method or a task, kept or broken."""
