"""What is asked of a fit: covariances, influence, sensitivity to the prior, and conclusions.

`uncertainty` has the observed information of a fit, from which it answers. `targets` are the parameters that
users ask for and their covariances, `margins` their intervals. `influence` has what one row does to them,
`row_effects` ranks rows by that, and `groups` is the same of groups. `responses` are how the posterior
answers to rows, `leave_one_out` and `leave_group_out` scores of rows without them, and `deletion` refits for
these. `prior_sensitivity` says whether the prior matters.

`conclusions` are statements about a fit, and `deciding_rows` the fewest rows that decide one. `partitions`
and `partition_search` say which rows belong together, and `number_of_clusters` is the answer to how many
clusters there are.
"""
