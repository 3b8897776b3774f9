"""Fitting the variational posterior: starts, ascent, and moves between optima.

`starts` makes the starting responsibilities, and fills holes for them. `ascent` runs a fit from one start or
several and climbs to an optimum, with the help of `acceleration`. `moves` and `search` propose other optima.
`row_span` makes the fit in the space that the rows span, where they are fewer than the features. `deletion`
finds the optimum without one row. `noise_cost` tells what `reg_covar` costs a fit.
`noise_density` has the default density of noise and the rows that start as noise, `enclosing_ellipsoid` the
volume that it takes.
"""
