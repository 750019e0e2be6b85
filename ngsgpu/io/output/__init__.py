"""Outputs that appear whole or not at all: texts, reads, arrays, patched copies of inputs."""
