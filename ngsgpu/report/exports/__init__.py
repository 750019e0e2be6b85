"""What a study gives to other pages: CSV tables, methods and software versions, MultiQC content."""
