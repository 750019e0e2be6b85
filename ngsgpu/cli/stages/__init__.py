"""Commands of the stages that work on reads, and what is counted and indexed for them."""
