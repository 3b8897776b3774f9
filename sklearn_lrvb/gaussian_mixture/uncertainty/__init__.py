"""Linear response at a fitted posterior: covariances, influence, and sensitivity to the prior.

`fitted` has the fitted state and `information_source` the observed information at it; `posterior_uncertainty`
answers from both. `targets` are the parameters that users ask for, with `target_covariances` and
`margins`. `influence_functions`, `row_covariances`, `leverage` and `leave_one_out` are about rows, which
`rows_in_range` keeps from overflowing, `imputation` about their missing values, and `prior_sensitivity` and
`prior_reading` about the prior. `fit_course` puts into words what would improve a fit.
"""
