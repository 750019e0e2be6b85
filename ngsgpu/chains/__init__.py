"""Chains of commands in one process: the reads go from step to step without being packed.

Every step is a command of the command line, with its options, checks, outputs and messages; a chain
only decides which files it reads and writes. Read in this order: ``steps`` (what a chain is, from a
file), ``flow`` (how commands take reads and pass them on), ``places`` (where reads lie between two
steps), ``plan`` (the words of each step), ``runner`` (one sample), ``command`` (``ngsgpu run``).
"""
