"""How long a sweep, a fit, error bars and influence take, and how much memory.

Both sides of a comparison run in turn in one process, with the same number of threads. Times are the least of
the rounds. A target has two thresholds, of which "solid" is wanted and "aim" is the hope beyond it; "reached"
says which of them a number meets, and prints those that it misses.

N is the number of rows, P of features and K of components. A *sweep* is one E-step, M-step and evaluation of
the lower bound. *sd* is short for standard deviation, and *sds* for several.
"""
