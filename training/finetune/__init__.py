"""Fine-tuning, whatever the task: an engine, and one compiled trainer for many runs."""
