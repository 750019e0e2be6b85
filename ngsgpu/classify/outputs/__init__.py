"""What classification writes.

``reads`` are lines a read: the table of ``-o`` and Kraken's lines. ``tree`` sums counts up the
taxonomy; ``kraken``, ``krona``, ``cami``, ``biom``, ``abundance`` and ``coverage`` write sums of a
sample in the formats of that name, as text.
"""
