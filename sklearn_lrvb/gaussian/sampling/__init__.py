"""Draws of the parameters of a Gaussian mixture: what `mixtures.posterior_sampling` asks of it.

`copula` makes draws whose moments are those of linear response, and their density; `likelihood` has the exact
posterior's, and completed copies of rows with holes. `gibbs` draws parameters given assigned rows, and
`orders` exchanges components. `hidden_values` is for rows with holes.
"""
