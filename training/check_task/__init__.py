"""What a task promises, checked for a file anywhere."""
