"""Classification in the report: its files, databases, plots and section."""
