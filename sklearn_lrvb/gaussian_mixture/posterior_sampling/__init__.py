"""Draws of the parameters, and the exact posterior by way of them.

`copula` makes draws whose moments are those of linear response, and their density; `likelihood` has the exact
posterior's. `sampler` weighs draws by the ratio of the two (`importance`), moves them by Gibbs steps
(`random_assignments`), and gives components their numbers back (`labels`). `hidden_values` is for rows with
holes.
"""
