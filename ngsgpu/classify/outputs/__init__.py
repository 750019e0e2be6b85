"""What classification writes.

``reads`` are lines a read: the table of ``-o`` and Kraken's lines. ``tree`` sums counts up the
taxonomy; ``kraken`` (Krona, too), ``mpa``, ``cami``, ``biom`` and ``tables`` (abundances, coverage)
write a sample's sums, as text. They are registered in ``ngsgpu.classify.formats``; ``given`` has
what they can take.
"""
