"""Rows in frames, in which log densities are simple, and what the E-step and the M-step compute there.

A block of rows is represented in *frames*: those of the components, or one that all share (`frames`).
`hidden_directions` is what missing values do in frames. `first_m_step` leads from given responsibilities to
the posterior at which a fit starts. `far_rows` is for rows whose squared distances overflow.
"""
