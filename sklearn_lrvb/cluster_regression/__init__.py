"""What explains the clusters, and what they explain: regressions of and on clusters, in two steps.

The first step is the fit of the mixture, the *measurement model*. The second, the *structural model*, keeps
the densities of the clusters and replaces their weights by a regression on covariates (Z. Bakk and J. Kuha,
"Two-step estimation of models between latent classes and external variables", Psychometrika 83 (2018),
871-892). The probabilities of the clusters that follow are the regressors of outcomes. Unlike a regression on
predicted labels, it knows that clusters are uncertain, row by row.

`designs` turns tables of covariates and outcomes into numbers. `structural_model` has the likelihood of
covariates and its maximum. `estimation` has what all second steps share: error bars and influence;
`covariate_step` and `outcome_step` are the two kinds. `quantities` are what users read: coefficients, average
effects, shares and means, and `intervals` their error bars. `direct_effects` tests the assumption on which
all rests. `results` is what users get, and `conclusion` one of their estimates, of which deciding rows are
sought.
"""
