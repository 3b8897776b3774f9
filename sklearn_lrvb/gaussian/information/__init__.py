"""The observed information of the mixture, with which linear response and Newton's method solve.

`observed_information` is the entrance, and estimates what each solver costs. `missing_information` computes G
as a product or a matrix, `missing_value_information` what missing values add to it, and `columns` a root of
it with few columns. The solvers themselves, which know nothing of mixtures, are in
`sklearn_lrvb.linear_response`.
"""
