"""Linear response at a fitted posterior: covariances, influence, and sensitivity to the prior.

`uncertainty` has the observed information of a fit, from which it answers. `targets` are the parameters that
users ask for and their covariances, `margins` their intervals. `influence` has what one row does to them,
`leave_one_out` scores of rows and how uncertain they are, `imputation` missing values, and
`prior_sensitivity` what the prior does.
"""
