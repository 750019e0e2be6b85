"""The truth about reads, for all evaluations.

``records`` reads error-free reads and alignments, ``matching`` finds the one of each read,
``streams`` the reads themselves in step with it, ``merged`` merged reads in step with their pairs,
``reference`` the genome they come from, ``indels`` which of them have insertions or
deletions; ``origins`` reads which taxon each read comes from, with ``lines`` for tables.
"""
