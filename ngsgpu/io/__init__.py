"""Reads in and reads out.

Read in this order: ``batch`` (what a batch of records is), ``scan`` (the kernels that split bytes
into records), ``source`` and ``bgzf`` (opening and decompressing), ``reader`` (file to batches),
``diagnose`` (what exactly is wrong with a bad record), ``pairs`` (mates), ``atomic`` and
``writer`` (outputs that appear whole or not at all). What is accepted and refused, and why, is in
``docs/formats.md``.

Nothing is imported here, so that a command that only writes a small file does not load Numba.
"""
