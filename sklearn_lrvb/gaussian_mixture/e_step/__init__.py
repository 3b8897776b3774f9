"""The E-step: one pass over the rows at a given posterior.

A block of rows is represented in *frames*, of which there are three: `own_frames`, `common_frame` and
`pair_frame`. `responsibilities` makes the assignments of the rows from there, `certainty` says which of them
count as certain, and `e_step` adds up what the M-step needs. `prediction` reports them row by row.
"""
