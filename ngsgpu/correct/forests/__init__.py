"""Forests that decide whether a base becomes the consensus: what they see, and how they vote."""
