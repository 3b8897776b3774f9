"""Linear response at a fitted Gaussian mixture, as far as it is about normal components
(`mixtures.uncertainty`).

`targets` are the parameters that users ask for, `margins` the intervals of covariances. `influence` has what
one row does to them, `scores_without_rows` scores of rows that are left out, `imputation` missing values, and
`prior_sensitivity` what the prior does.
"""
