"""Taxonomies: the tree, the dump files it is read from, accessions mapped to taxa."""
