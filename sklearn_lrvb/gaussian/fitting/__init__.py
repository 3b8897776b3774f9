"""Fitting the variational posterior, as far as it is about normal components: starts, splits and merges.

The ascent itself, by `mixture.ascent`, is the same for all kinds of mixtures. `starts` makes the starting
responsibilities, and fills holes for them. `component_statistics` merges and empties components, and `search`
splits them. `row_span` makes the fit in the space that the rows span, where they are fewer than the features.
`deletion` finds the optimum without one row. `noise_cost` tells what `reg_covar` costs a fit.
`noise_density` has the default density of noise and the rows that start as noise, `enclosing_ellipsoid` the
volume that it takes.
"""
