"""How a read is corrected: ``walk`` and ``search``, the default rule; ``voting``, the papers'."""
