"""Hash tables on the GPU."""
