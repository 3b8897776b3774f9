"""Distributions of parameters: normalizing constants, moments and quantiles, as functions of arrays.

`special_functions` has the quantile functions of numbers with a restricted range, and the log gamma function
without what cancels between normalizing constants; `copula_margins` has the margins of a Gaussian
copula; `dirichlet` and `wishart` have one distribution each.
"""
