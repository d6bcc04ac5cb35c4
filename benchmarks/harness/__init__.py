"""Parts of all benchmarks: processes, rounds, memory, environments, reports, records."""
