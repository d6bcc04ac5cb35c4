"""What every command is made of: settings, checks, errors, child processes, locks, reports."""
