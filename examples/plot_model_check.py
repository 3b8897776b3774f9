"""
================================
Are there four kinds of mammals?
================================

A mixture finds clusters in any table. It assumes that every cluster is normal, and where a
column is not, it makes clusters to fill the shape. They look like real ones.

Here are 83 mammals: how many hours a day they sleep, and how many kilograms they weigh.
How many clusters are there?
"""

# %%
# Four clusters, it seems
# -----------------------
# The table comes with ggplot2 of R; the file lies beside this script.
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_lrvb import LRVBGaussianMixture, number_of_clusters
from sklearn_lrvb.displays import ModelCheckDisplay

folder = Path(globals().get("__file__", "")).parent
mammals = pd.read_csv(folder / "mammals.csv", comment="#", index_col="name")
X = mammals[["sleep_total", "bodywt"]]

mixture = LRVBGaussianMixture(random_state=0)
settings = {"another_prior": False, "random_state": 0}
found = number_of_clusters(mixture, X, **settings)
print(textwrap.fill(found.verdict, 88))

# %%
# Four has by far the largest probability, though a rough one. But the last sentence says that
# the model does not fit. What is wrong?
fit = found.estimators_[4]
check = fit.model_check(X)
print(check)

# %%
# Weights of mammals go from grams to tons, and most mammals are small: the column is skew.
# The check has fitted other models to the same rows, and says how much better they are. One
# nat of the log evidence is a factor of 2.7 in how probable the rows are; more than a hundred
# leave no doubt. (For the logarithm the change of the unit is taken into account.)
#
# The picture shows the same. If the model holds, histograms are flat, and nearly all bars
# end in the grey band.
ModelCheckDisplay.from_result(check)
plt.show()

# %%
# What was done: logarithms
# -------------------------
logs = X.assign(bodywt=np.log(X["bodywt"]))
found_in_logs = number_of_clusters(mixture, logs, **settings)
print(textwrap.fill(found_in_logs.verdict, 88))

# %%
# Now nothing is sure: one, two or three. Does this model fit?
fit_in_logs = found_in_logs.estimators_[2]
print(fit_in_logs.model_check(logs))

# %%
# It does, as far as 83 rows can tell. Here are the clusters of both. On the left the scale
# of the weight is logarithmic too, but the fit did not know: one cluster is of the largest
# animals, one of a lion and a tiger, and all are slices of the same cloud.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, model, rows in ((axes[0], fit, X), (axes[1], fit_in_logs, logs)):
    labels = model.predict(rows)
    for k in np.unique(labels):
        own = X[labels == k]
        ax.scatter(own["bodywt"], own["sleep_total"], label=f"component {k}", s=18)
    ax.set(xscale="log", xlabel="weight, kg")
    ax.legend(fontsize="small")
axes[0].set(ylabel="hours of sleep a day", title="Four components of the weight")
axes[1].set(title="Two components of its logarithm")
plt.show()

# %%
# And how large would the first of the two clusters be, if there are two? (``weights`` here are
# shares of the clusters, not kilograms.)
posterior = fit_in_logs.posterior(logs)
share, std = posterior.summary(["weights"])["mean"].iloc[0], posterior.std("weights")[0]
print(f"share of the first cluster: {share:.2f} +- {std:.2f}")

# %%
# **Answer.** No. The four clusters, with a probability of 0.84, are the price of taking a
# skew column for normal. With the logarithm of the weight, which makes the rows more
# probable beyond doubt, there may be one, two or three, and the share of the first of two
# is known so badly that it may be small or large. A probability is always one *given the
# model*: ask ``model_check`` first.
#
# Read on: the page `Does the model fit? <../guide/does_the_model_fit.html>`_ of the user
# guide, and :ref:`sphx_glr_gallery_plot_heavy_tails.py`.
