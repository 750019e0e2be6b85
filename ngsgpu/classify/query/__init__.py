"""Candidates of reads: look-up of features, and windows with most hits."""
