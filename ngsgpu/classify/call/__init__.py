"""From candidates to taxa."""
