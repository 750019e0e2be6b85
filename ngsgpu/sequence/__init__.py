"""Bases, k-mers and hash functions: the words that every stage is made of.

``codec`` turns letters into bit planes and back, ``intrinsics`` holds what Numba does not offer,
``hashing`` hash functions and the search in hash tables, ``kmers`` k-mers of one or several words.
``hashing.cuh``, ``kmer.cuh`` and ``search.cuh`` (binary search) are for GPUs.
"""
