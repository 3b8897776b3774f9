"""The observed information of the mixture, with which linear response and Newton's method solve.

`observed_information` is the entrance. `missing_information` computes G as a product or a matrix,
`hidden_information` what missing values add to it, and `columns` its columns. The solvers
themselves, which know nothing of mixtures, are in `sklearn_lrvb.linear_response`.
"""
