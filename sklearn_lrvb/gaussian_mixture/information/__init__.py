"""The observed information of the mixture, with which linear response and Newton's method solve.

`observed_information` is the entrance. `missing_information` computes G as a product or a matrix,
`hidden_information` what missing values add to it, `row_columns` its columns (`ambiguous_columns` of complete
rows, `expected_columns` of others), and `cost_model` estimates which of them is cheapest. The solvers
themselves, which know nothing of mixtures, are in `sklearn_lrvb.linear_response`.
"""
