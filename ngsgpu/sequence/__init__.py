"""Bases and hash functions: the words that every stage is made of.

``codec`` turns letters into bit planes and back, ``bits`` holds the machine instructions that
Numba does not expose, ``hashing`` the hash function of the minhash signatures.
"""
