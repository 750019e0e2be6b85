"""What classification writes.

``reads`` are lines a read: the table of ``-o`` and Kraken's lines. ``tree`` sums counts up the
taxonomy; ``kraken`` (Krona, too), ``cami``, ``biom`` and ``tables`` (abundances, coverage) write a
sample's sums, as text.
"""
