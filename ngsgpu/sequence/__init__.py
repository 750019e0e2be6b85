"""Bases and hash functions: the words that every stage is made of.

``codec`` turns letters into bit planes and back, ``intrinsics`` holds what Numba does not offer,
``hashing`` the hash functions.
"""
