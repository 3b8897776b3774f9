"""Fitting the variational posterior: starts, ascent, and moves between optima."""
