"""Starting responsibilities, by scikit-learn's names and from the same random numbers."""

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin


def _kmeans(X, n_components, random_state):
    return KMeans(n_clusters=n_components, n_init=1, random_state=random_state).fit(X).labels_


def _random(X, n_components, random_state):
    responsibilities = random_state.uniform(size=(len(X), n_components))
    return responsibilities / responsibilities.sum(axis=1, keepdims=True)


def _random_seeds(X, n_components, random_state):
    return random_state.choice(len(X), size=n_components, replace=False)


def _kmeans_plusplus_seeds(X, n_components, random_state):
    return kmeans_plusplus(X, n_components, random_state=random_state)[1]


def _one_hot(n_samples, rows, components, n_components):
    responsibilities = np.zeros((n_samples, n_components))
    responsibilities[rows, components] = 1.0
    return responsibilities


def starting_responsibilities(X, n_components, init_params, random_state, seeds_alone):
    """Responsibilities to start from, (n_samples, n_components).

    Parameters
    ----------
    X : array (n_samples, n_features)
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}
    random_state : RandomState
    seeds_alone : bool
        What "k-means++" and "random_from_data" do with their seeds: True, each component starts from
        its seed alone and the prior, as in scikit-learn; False, every row goes to the nearest
        seed (the limit of the former, and all that can be done without a proper prior).
    """
    everything = np.arange(len(X))
    if init_params == "kmeans":
        labels = _kmeans(X, n_components, random_state)
        return _one_hot(len(X), everything, labels, n_components)
    if init_params == "random":
        return _random(X, n_components, random_state)
    draw = {"random_from_data": _random_seeds, "k-means++": _kmeans_plusplus_seeds}[init_params]
    seeds = draw(X, n_components, random_state)
    if seeds_alone:
        return _one_hot(len(X), seeds, np.arange(n_components), n_components)
    return _one_hot(len(X), everything, pairwise_distances_argmin(X, X[seeds]), n_components)
