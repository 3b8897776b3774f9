"""One module per experiment: ``section(found)`` is the markdown text of its rows."""
