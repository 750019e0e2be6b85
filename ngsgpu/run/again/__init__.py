"""Inputs that are read again: with some bases replaced, or piece by piece."""
