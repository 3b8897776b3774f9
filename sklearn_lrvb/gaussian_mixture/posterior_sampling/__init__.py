"""Draws of the parameters, and the exact posterior by way of them.

`copula` makes draws whose moments are those of linear response, and `copula_density` is their density;
`log_joint` is the exact posterior's. The ratio of the two weighs draws (`importance_sampling`), is the start
of a Gibbs sampler (`gibbs_sampling`), and tells whether linear response can be trusted (`posterior_check`).
`hidden_values` is for rows with holes, whose missing values `imputations` draws.
"""
