"""Joins of pieces over repeats, by pairs of reads.

Read in this order: ``gaps`` (what pairs say), ``join``, ``paths`` (through the graph), ``unique``
(pieces of one copy), ``copies`` (by depth) and ``search`` (one path of several), ``bridges``;
``local`` (reads around two ends) and ``patches`` (where the graph has no path).
"""
