"""The observed information of the mixture, and what it costs to form it or to solve with it."""
