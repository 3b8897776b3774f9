"""When an assignment counts as certain: one threshold for each purpose, and what it bounds."""

# Responsibilities are computed as no less than exp(-230) = 1e-100: numbers that underflow, here or in
# products of a few, take the processor up to forty times as long.
LEAST_LOG_RESPONSIBILITY = -230.0

# Components of smaller responsibility are not counted as possible for a row. This bounds counts alone, which
# the cost model of the solvers uses: results do not depend on it.
POSSIBLE = 1e-14

# Components of smaller responsibility are left out of a row's score and of its derivatives. This bounds their
# error by a few units in the last digit.
COUNTS_IN_SCORE = 1e-15

# Where no second component has a larger responsibility, the assignment of a row does not respond to changes
# of the parameters; and a smaller responsibility is reported with a standard deviation of zero. This bounds
# the change of an assignment: times any feature of the row, it is still far below round-off.
RESPONDS = 1e-30

# Rows are left out of the missing information as certain, as long as what is left out has a smaller trace
# than this in units of the complete information. It bounds the relative error of every posterior variance.
NEGLIGIBLE_INFORMATION = 1e-12
