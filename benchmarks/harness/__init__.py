"""What the benchmarks share: processes, rounds, memory, other environments, reports, records."""
