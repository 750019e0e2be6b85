"""Databases on disk: planned, built, extended, opened, checked."""
