"""Opening inputs, compressed or not, and reading ahead; BGZF in both directions."""
