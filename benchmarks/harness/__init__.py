"""The list of experiments, how they are measured, rows, tables, figures and the report."""
