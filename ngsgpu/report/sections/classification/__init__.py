"""Classification in the report: its files, plots and section."""
