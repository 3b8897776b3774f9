"""The estimators that users call: arguments, attributes and methods, by scikit-learn's conventions.

`gaussian_mixture` and `latent_class_mixture` are the mixtures, and `base` has what both have: a reader of a
method begins there. `attributes` are computed from a fit where they are read, `fitted` is what a fit leaves,
and `arguments` checks what users pass. `imputer` fills missing values, and `number_search` compares
numbers of components.
"""
