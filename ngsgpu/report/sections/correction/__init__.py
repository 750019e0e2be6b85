"""Correction in the report: its files, plots, section and parameters."""
