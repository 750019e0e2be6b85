"""Correction in the report: its plots, section and parameters."""
