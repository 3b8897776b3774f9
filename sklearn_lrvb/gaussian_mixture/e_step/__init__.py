"""The E-step: one pass over the rows at a given posterior.

A block of rows is represented in *frames*, of which there are three: `own_frames`, `common_frame` and
`pair_frame`; where some blocks have holes, `mixed_frames` has two of them. `hidden_directions` is what
missing values do in frames. `responsibilities` computes the assignments of the rows from there, `certainty`
has the thresholds below which an assignment counts as certain, and `e_step` adds up the moments that the
M-step needs. `prediction` returns responsibilities and scores row by row.
"""
