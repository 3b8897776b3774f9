"""What is compared: our library, scikit-learn's mixtures, Gibbs sampling, NUTS and bootstraps."""
