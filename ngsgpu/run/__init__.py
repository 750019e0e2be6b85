"""What every run shares, whatever its stage."""
