"""Fitting the variational posterior: starts, ascent, and moves between optima.

`initialization` makes the starts, for which `completion` fills holes, and `restarts` runs them. `ascent`
climbs to an optimum, with the help of `anderson_acceleration`. `moves` and `search` propose other optima;
they evaluate merges and deletions by `component_statistics` and `assignment_sums`, and splits by `splits`.
`row_span` makes the fit in the space that the rows span, where they are fewer than the features. `noise_cost`
tells what `reg_covar` costs a fit. `progress` tells callbacks and prints.
"""
