"""Mixtures of any kind: the rules of fitting and of answering, without the arithmetic of the components.

`model` is the seam: what a kind of mixture says of its rows, its prior and its posterior. `responsibilities`
and `e_step` are passes over the rows at a posterior, `prediction` returns what they say row by row.
`weight_priors` has the posteriors of the weights. `ascent` runs a fit from one start or several and climbs to
an optimum, with the help of `acceleration`. `moves` and `search` propose other optima, and `refit` climbs to
one nearby. `callbacks` tells what goes on.
"""
