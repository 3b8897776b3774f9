"""Settings, clock, rows, tables, figures, the registry of experiments, and the two commands."""
