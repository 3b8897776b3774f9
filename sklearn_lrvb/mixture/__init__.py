"""Mixtures of any model: the rules of fitting and of answering, without the arithmetic of the components.

`model` is the interface: what a model says of its rows, its prior and its posterior. `e_step` is a pass over
the rows at a posterior, `prediction` returns what it says row by row. `weight_priors` has the posteriors of
the weights. `ascent` leads from a start to an optimum, with the help of `acceleration`; a `fit` is a state on
the way. `multi_start` has the clusters of k-means, and compares starts. `moves` and `search` propose split
and merge moves, and `refit` ascends to an optimum nearby.
"""
