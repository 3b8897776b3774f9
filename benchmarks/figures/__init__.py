"""One module per experiment with a figure: ``draw(found, path)`` saves it."""
