"""The E-step: one pass over the rows at a given posterior."""
