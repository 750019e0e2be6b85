"""Commands of whole studies: begin one, report it, evaluate results, train models."""
