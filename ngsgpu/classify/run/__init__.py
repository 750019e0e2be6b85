"""The run of ``ngsgpu classify`` from reads to outputs."""
