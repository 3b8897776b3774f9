"""Draws of the parameters of any mixture, and the exact posterior by way of them.

A model (`MixtureModel`) makes `draws` whose moments are those of linear response, and knows their density
and the exact posterior's. `copula` and `likelihood` have what is the same for all models.
`sampler` weighs draws by the ratio of the two densities (`importance`). `chains` move them by trajectories
and by Gibbs steps (`random_assignments`) until they are enough (`exact`), and `chain_draws` takes moments.
`labels` gives components their numbers back. `number_evidence` has the evidence of every number of
components, from `optimum_evidence` and from the visits of chains, and `posterior_check` says whether linear
response can be trusted.
"""
