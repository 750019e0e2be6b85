"""How accurate parameters and rules are, on data they were not chosen on."""
