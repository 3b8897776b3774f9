"""The E-step: one pass over the rows at a given posterior.

A block of rows is represented in *frames*: those of the components, or one that all share (`frames`).
`hidden_directions` is what missing values do in frames. `responsibilities` computes the assignments of the
rows from there, and has the thresholds below which an assignment counts as certain. `e_step` adds up the
moments that the M-step needs. `prediction` returns responsibilities and scores row by row.
"""
