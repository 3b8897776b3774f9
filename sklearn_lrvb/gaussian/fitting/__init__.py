"""Fitting the variational posterior, as far as it is about normal components.

The ascent itself, by `mixture.ascent`, is the same for all models. `starts` makes the starting
responsibilities, and `completion` fills missing values for them. `component_statistics` merges and empties
components, and `split_proposals` proposes splits of them. `row_span` makes the fit in the space that the rows
span, where they are fewer than the features. `noise_cost` tells what `reg_covar` costs a fit. Where there may
be outliers, `core` has the central part of the rows, `far_out` the rows that start as noise or are no seeds,
`noise_density` the default density of noise, and `enclosing_ellipsoid` the volume that it takes.
"""
