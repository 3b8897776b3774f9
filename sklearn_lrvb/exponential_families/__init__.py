"""Exponential families (Section 2 of the paper): one family a file.

*Conventions.* A family is its log partition A(eta); its mean parameters are grad A and the
covariance of its sufficient statistics, V, is hess A. Arrays broadcast over leading axes.
"""
