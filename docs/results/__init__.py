"""The files of `benchmarks/results` in the documentation: values, tables, reports, origins."""
