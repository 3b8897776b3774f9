"""Draws of the parameters of a Gaussian mixture: what `sampling` asks of it.

`copula` makes draws whose moments are those of linear response, with their density. `parameters` has what
draws stand for, the prior's density, and draws given assigned rows. `likelihood` has the log densities of
rows, `missing_values` and `row_scales` what rows may have besides; the former also completes rows.
"""
