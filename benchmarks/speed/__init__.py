"""How long an iteration, a fit, error bars and influence take, and how much memory.

Both sides of a comparison run in turn in one process, with the same number of threads. Times are the least of
the rounds, on a machine whose load varies. A target has two thresholds: "solid" is wanted, "aim" is the hope
beyond it. The column "reached" says which of them a number meets; targets that are missed are shown too. The
problems are Gaussian clusters, listed in `benchmarks/problems/clusters.py`. Where nothing else is said, both
sides have scikit-learn's prior, in this library `prior="fixed"`; what [the learned
prior](accuracy.md#the-learned-prior) costs beside that is on the page about accuracy.

N is the number of rows, P of features and K of components. An *iteration* is one E-step, M-step and
evaluation of the lower bound. *sd* is short for standard deviation, and *sds* for several.
"""
