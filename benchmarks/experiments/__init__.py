"""One module per experiment: ``measure(settings)`` yields rows of results."""
