"""The observed information of the mixture: what linear response and Newton's method solve with."""
