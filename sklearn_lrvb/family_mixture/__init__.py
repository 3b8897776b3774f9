"""Mixtures whose components are products of conjugate families, one for some of the columns each.

`prior` has the features of rows, `posterior` q and the M-step, `coordinates` the E-step, `information` the
observed information. `model` says to the rules of `mixture`, `answers` and `sampling` where the rest is.
"""
