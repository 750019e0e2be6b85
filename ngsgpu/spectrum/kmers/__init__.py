"""A read and its k-mers (``reads``), their counts (``counts``), and which are solid (``solid``)."""
