"""Rows in whitened coordinates, in which log densities are simple, and what E-step and M-step compute there.

A block of rows is represented in the coordinates of the components, or in some that all share
(`coordinates`, with the first M-step of a fit). `missing_directions` is what missing values do there.
`far_rows` is for rows whose squared distances overflow.
"""
