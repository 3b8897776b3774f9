"""Log densities of a model by name: priors and likelihoods that stand for their terms."""
