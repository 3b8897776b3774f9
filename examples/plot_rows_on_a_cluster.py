"""
=============================================================
Rows on a cluster: what changes if they do not fit in memory?
=============================================================

Two million rows in chunks, on two worker processes that stand for the machines of a
cluster. The process that asks for the fit never holds them: what comes back to it are
sums, a few kilobytes from every pass. The clusters overlap, and the question is how far
two of them are apart, how sure that is, and on which rows it depends.

This takes `Dask <https://www.dask.org>`_: ``pip install "sklearn-lrvb[dask]"``.
"""

# %%
# A cluster of two workers
# ------------------------
# On a real cluster this cell is the only one that changes:
# ``Client("tcp://address-of-the-scheduler:8786")``, with this package installed on all
# of its machines. Without a client, Dask uses the threads of this process.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import psutil
from dask.distributed import Client, wait

from sklearn_lrvb import LRVBGaussianMixture

# New processes run the script that starts them again, unless they do not know its name.
# (A script of your own can say "if __name__ == '__main__':"; a notebook needs neither.)
globals().pop("__file__", None)
client = Client(n_workers=2, threads_per_worker=1, dashboard_address=":0")

# %%
# Two million rows
# ----------------
# An array of Dask is a recipe: nothing is computed before it is asked for. Usually the
# recipe is to read files, as ``dask.dataframe.read_parquet`` does; here it draws random
# numbers, in 20 chunks. ``persist`` has the workers compute the chunks and keep them in
# their memory. Without it, every pass of the fit would make all of them again.
N_ROWS = 2_000_000
shares = [0.5, 0.3, 0.2]
centres = np.array([[0.0, 0.0], [2.5, 1.0], [-0.5, 3.0]])


def positions(own, noise):
    """Rows of a chunk, from the clusters that they are of."""
    return (centres[own[:, 0]] + noise).astype(np.float32)


rng = da.random.default_rng(0)
chunks = N_ROWS // 20
own = rng.choice(3, size=(N_ROWS, 1), p=shares, chunks=(chunks, 1))
noise = rng.normal(size=(N_ROWS, 2), chunks=(chunks, 2))
X = da.map_blocks(positions, own, noise, dtype=np.float32, chunks=noise.chunks)
X = X.persist()
wait(X)
print(f"{len(X):,} rows, {X.nbytes / 1e6:,.0f} MB in {X.npartitions} chunks")

# %%
# The fit
# -------
# Nothing about it is special. Each pass goes to where the chunks are, and brings back
# sums, from which the next step is computed here.
process = psutil.Process()
before = process.memory_info().rss
mixture = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
grown = (process.memory_info().rss - before) / 1e6
print(f"{mixture.n_iter_} steps; the memory of this process grew by {grown:.0f} MB")

order = np.argsort(-mixture.weights_)
for k in order:
    share = f"{mixture.weights_[k]:.4f} +- {mixture.weights_std_[k]:.4f}"
    mean = f"{mixture.means_[k].round(4)} +- {mixture.means_std_[k].round(4)}"
    print(f"share {share}, mean {mean}")

# %%
# A difference, and how sure it is
# --------------------------------
# How far apart are the first two clusters, in the first column? Draws of the posterior
# answer that and any other question about the parameters. They are made here: the fit
# is small, wherever its rows are. With so many rows error bars are small, but those of
# mean field, which take every row's cluster for as sure as its probability, are still
# too small in the same proportion.
first, second = order[:2]
draws = mixture.posterior().sample(4000)["means"][..., 0]
difference = draws[:, second] - draws[:, first]
contrast = np.zeros(mixture.means_.shape)
contrast[second, 0], contrast[first, 0] = 1, -1
contrast = contrast.ravel()
sd_mean_field = np.sqrt(
    contrast @ mixture.posterior(method="mean_field").covariance("means") @ contrast
)
print(f"difference {difference.mean():.4f} +- {difference.std():.4f}; made with 2.5")
print(f"error bar by mean field {sd_mean_field:.4f}")

# %%
# The rows on which it depends
# ----------------------------
# The influence of two million rows on the means is a lazy array, like X. What follows
# is computed chunk by chunk when ``compute`` is called, and only the answer comes back:
# the row numbers of the 200 rows that pull the clusters apart most.
influence = mixture.influence(X, target="means", perturb="weight")
on_difference = influence[:, second, 0] - influence[:, first, 0]
rows = da.argtopk(on_difference, 200).compute()
pulls, places = da.compute(on_difference[rows], X[rows])
in_error_bars = pulls / difference.std()
print(f"influence is lazy: shape {influence.shape}, {influence.nbytes / 1e6:,.0f} MB")
print(f"without row {rows[0]:,}: {-in_error_bars[0]:.4f} error bars")
print(f"without all {len(rows):,}: {-in_error_bars.sum():.2f} error bars")

# %%
# On the left, all rows as a histogram, which is a sum over chunks too, and the 200
# rows. On the right, the draws of the difference.
edges = [np.linspace(-5, 7, 121), np.linspace(-5, 8, 131)]
counts, *_ = da.histogramdd(X, bins=edges)
counts = counts.compute()

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
left.pcolormesh(*edges, np.log1p(counts.T), cmap="Greys", rasterized=True)
left.plot(*places.T, ".", ms=3, color="#D55E00", label="200 rows of most influence")
left.plot(*mixture.means_.T, "+", ms=12, mew=2, color="#0072B2", label="means")
left.set(xlabel="column 0", ylabel="column 1", title=f"{N_ROWS:,} rows, log scale")
left.legend(loc="lower right", fontsize="small")
bars, at, _ = right.hist(difference, bins=40, density=True, color="0.8", label="draws")
right.axvline(2.5, color="black", lw=1, ls=":", label="made with")
z = (at - difference.mean()) / sd_mean_field
mean_field = np.exp(-(z**2) / 2) / (sd_mean_field * np.sqrt(2 * np.pi))
right.plot(at, mean_field, "--", color="#D55E00", label="mean field")
right.set(xlabel="difference of the means in column 0", yticks=[], title="Posterior")
right.legend(fontsize="small")
plt.show()
client.close()

# %%
# **Answer.** The type of X, and nothing else: it is the same class, with the same
# numbers. Two million rows tell the difference to 0.0025, where mean field would have
# said 0.0016. What has an entry for every row, such as influence, is lazy; ask it for
# sums, or for its largest values. Here no single row matters (0.7 % of an error bar),
# but 200 together do: without that one row in ten thousand, the difference would be
# about one error bar smaller. They are far from all centres, and the first to check.
#
# Read on: :ref:`sphx_glr_gallery_plot_exact_multivariate_normal.py`, where the error
# bars are exact.
