"""What linear response says at a fitted posterior."""
