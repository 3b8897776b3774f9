"""The estimators that users call: arguments, attributes and methods, by scikit-learn's conventions.

`gaussian_mixture` and `latent_class_mixture` are the mixtures, `imputer` fills missing values, and
`number_of_clusters` compares numbers of components. `..._methods` are the methods that both mixtures have,
`fitted` is the state that these use, and `arguments` checks what users pass.
"""
