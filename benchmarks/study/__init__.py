"""A whole study of equal samples on several GPUs: was every GPU used, none twice, and how well.

``data`` makes genomes, reads and the config; ``timeline`` judges the jobs; ``__main__`` runs the
workflow on them.
"""
