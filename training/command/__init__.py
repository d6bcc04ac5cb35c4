"""The framework of all commands: settings, checks, errors, child processes, locks, reports."""
