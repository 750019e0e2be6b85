"""Charts of docs/images, drawn from the files in benchmarks/results."""
