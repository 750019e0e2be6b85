"""Which bases of an anchor its alignment changes, and how it votes on its candidates."""
