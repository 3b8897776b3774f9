"""Draws of the parameters of a mixture of any kind, and the exact posterior by way of them.

A kind of mixture (`MixtureModel`) makes `draws` whose moments are those of linear response, and knows their
density and the exact posterior's. `copula`, `likelihood` and `sticks` have what is the same for all kinds.
`sampler` weighs draws by the ratio of the two densities (`importance`). `chains` move them by trajectories
and by Gibbs steps (`random_assignments`) until they are enough (`exact`), and `chain_draws` takes moments.
`labels` gives components their numbers back, `row_labels` draws those of rows, `occupied` counts the
components that hold rows, and `posterior_check` says whether linear response can be trusted.
"""
