"""Two versions side by side: the same commands must write the same bytes, in the same time.

``scripts/compare_outputs`` runs it. Read ``cases`` (which commands), ``inputs`` (on what), ``runs``
(run one, compare what both wrote), then ``__main__``.
"""
