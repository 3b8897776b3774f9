"""Mixtures of classes within which columns of several kinds are independent: latent class analysis."""
