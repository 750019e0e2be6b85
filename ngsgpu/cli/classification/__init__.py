"""Commands of classification: of its databases, of reads, by a server, and of their calls."""
