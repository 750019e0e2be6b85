"""Changes of databases: adding, removing and updating references, thinning."""
