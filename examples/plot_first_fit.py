"""
================================================================
A first fit: what clusters, how sure, and which row drives them?
================================================================

The petals and sepals of 150 irises were measured, four lengths of each flower. Do the
flowers fall into groups? How large are these, and what is typical of each? An answer
is worth little without its error bar, and less if a single odd flower decides it. One
fit of a Gaussian mixture, a model that describes every group by a mean and a
covariance matrix, gives all three: the groups, the error bars, and how much each
flower matters.

The species of the flowers are known, but the fit does not see them.
"""

# %%
# Fit
# ---
# Say how many clusters you expect, here three. (``n_components`` is an upper bound:
# ``n_occupied_`` says how many of them hold rows.) Everything else can stay at its
# default.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.displays import ComponentDisplay, InfluenceDisplay

iris = load_iris(as_frame=True)
X = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
mixture = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
print(
    f"{mixture.n_occupied_} clusters in {len(X)} flowers; converged: {mixture.converged_}"
)

# %%
# How sure?
# ---------
# Every estimate has an error bar: the standard deviation of what is still unknown about
# it after seeing the data. The *posterior* has them, in the shape of the estimates. Here
# are those of the clusters, by falling share. (``posterior.summary()`` has all of them as
# a pandas table, with intervals.)
posterior = mixture.posterior()
print(posterior)
weights_std, means_std = posterior.std("weights"), posterior.std("means")
for k in np.argsort(-mixture.weights_)[: mixture.n_occupied_]:
    print(f"cluster {k}: share {mixture.weights_[k]:.3f} +- {weights_std[k]:.3f}")
    for name, mean, sd in zip(X.columns, mixture.means_[k], means_std[k], strict=True):
        print(f"    {name:<14}{mean:.2f} +- {sd:.2f}")

# %%
# A display draws the means as intervals that hold each with 95 % probability. (The
# dashed ones are what variational Bayes says without the correction that this package
# makes. Where two clusters overlap, it takes every flower's cluster as known, and its
# intervals are too short.)
posterior.plot()
plt.show()

# %%
# Another display draws the clusters in the plane of any two measurements. The outline
# of a cluster is where its flowers lie; the small filled ellipse is where its mean
# lies, with 95 % probability.
display = ComponentDisplay.from_estimator(
    mixture, X, features=("petal length", "petal width")
)
display.ax_.set_title("Three clusters of irises")
# sphinx_gallery_thumbnail_number = 2
plt.show()

# %%
# The species, which the fit has not seen, tell what the clusters are.
species = pd.Series(iris.target_names[iris.target], name="species")
print(pd.crosstab(species, pd.Series(mixture.predict(X), name="cluster")))

# %%
# Which flower drives it?
# -----------------------
# The *leverage* of a flower says how much the fit depends on it. A few stand out: theirs
# is ten times that of most others.
leverage = mixture.leverage(X)
order = np.argsort(-leverage)
print(
    f"largest leverages: {leverage[order[:3]].round(2)}, median {np.median(leverage):.2f}"
)
first = order[0]
print(f"the first is flower {first}:\n{X.iloc[first].to_string()}")

# %%
# What would the answer be without it? *Influence* says how far each mean moves if a row
# counts a little more. With the sign reversed, it is what leaving the row out would do,
# without fitting again.
k = mixture.predict(X)[first]
shift = -mixture.influence(X.iloc[[first]], perturb="weight")[0, k] / means_std[k]
print(f"without flower {first}, the means of cluster {k} move by, in error bars:")
for name, value in zip(X.columns, shift, strict=True):
    print(f"    {name:<14}{value:+.2f}")
spread = mixture.influence(X.iloc[[first]], target="covariances", perturb="weight")[
    0, k
]
spread = -np.diag(spread / posterior.std("covariances")[k])
print(f"and its variance of the petal length by {spread[2]:+.2f}")

# %%
# A display draws that influence for all flowers at once, here on the mean length of the
# petals: blue flowers lower it, red ones raise it. It names those that move it most.
# They are the largest flowers, and small ones that the cluster takes from its neighbour.
display = InfluenceDisplay.from_estimator(
    mixture,
    X,
    component=k,
    feature="petal length",
    perturb="weight",
    features=("petal length", "petal width"),
)
display.ax_.set_title(f"Who moves the mean petal length of cluster {k}?")
plt.show()

# %%
# **Answer.** Three clusters of about a third of the flowers each, +- 0.04. One is the
# species *setosa*; the other two overlap, and are the other two species but for five
# flowers. The means are known to 0.02 to 0.09 cm. The answer depends most on flower 118,
# but not by much: without it, no mean would move by more than 0.3 of its error bar, and
# the variance of the petal lengths of its cluster by 0.4.
#
# Read on: :ref:`sphx_glr_gallery_plot_mnist_pca_pipeline.py` checks error bars against
# a slow and exact method, and :ref:`sphx_glr_gallery_plot_how_many_clusters.py` asks
# how many clusters there are.
