"""Thresholds of responsibility below which an assignment counts as certain, one for each purpose."""

# Responsibilities below exp(-230) = 1e-100 are raised to it: numbers that underflow, here or in products of a
# few of them, take the processor up to forty times as long.
LEAST_LOG_RESPONSIBILITY = -230.0

# Raising a responsibility costs the lower bound 1e-100 times its logarithm, in nats, and the information
# 1e-100 times the square of that. In blocks of rows with smaller logarithms than this, responsibilities are
# set to zero instead, which takes a little longer.
LEAST_LOG_RESPONSIBILITY_RAISED = -1e35

# Components of smaller responsibility are not counted as possible for a row. The counts serve the cost model
# of the solvers. Where there are none, too little information is missing for a fixed point to be a saddle.
LEAST_POSSIBLE_RESPONSIBILITY = 1e-14

# Components of smaller responsibility are left out of a row's score and of its derivatives. This bounds their
# error by a few units in the last digit.
LEAST_RESPONSIBILITY_IN_SCORE = 1e-15

# Where no second component has a larger responsibility, the assignment of a row counts as unchanged by the
# parameters; and a smaller responsibility is reported with a standard deviation of zero. The change that is
# left out, times any feature of the row, is far below round-off.
LEAST_RESPONSIVE_RESPONSIBILITY = 1e-30

# Rows of certain assignment are left out of the missing information. Together their information has a smaller
# trace than this, in units of the complete information: a bound of every posterior variance's relative error.
NEGLIGIBLE_INFORMATION = 1e-12
