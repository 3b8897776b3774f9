"""What explains the clusters, and what they explain: regressions of and on clusters, in two steps.

The first step is the fit of the mixture, the *measurement model*. The second, the *structural model*, keeps
the densities of the clusters and replaces their weights by a regression on covariates; outcomes have a
distribution in each cluster (Z. Bakk and J. Kuha, "Two-step estimation of models between latent classes and
external variables", Psychometrika 83 (2018), 871-892). Unlike a regression on predicted labels, it knows that
clusters are uncertain, row by row.

`designs` turns tables of covariates and outcomes into numbers, `outcomes` has the distributions, and
`structural_model` the likelihood and its maximum. `quantities` are what users read: coefficients, average
effects, shares and means. `estimation` has their error bars, and `direct_effects` a test of the assumption
on which all rests. `results` is what users get.
"""
