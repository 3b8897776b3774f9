"""Data sets, the mixtures that are fitted to them, and the priors."""
