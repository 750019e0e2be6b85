"""Sequences that grow towards a mate: each file's CUDA counterpart stands beside it.

Read in this order: ``task`` (one sequence and its candidates), ``growth`` (lets it grow),
``joining`` (makes one connection of two).
"""
