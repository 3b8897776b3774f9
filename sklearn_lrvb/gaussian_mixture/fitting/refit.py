"""The optimum for other weights of the same rows, from the optimum that is there, under the same prior.

Questions about rows that are left out, or drawn again, start here: few steps lead from one to the other.
"""

from sklearn_lrvb.gaussian_mixture.fitting.ascent import Ascent

# Largest number of steps, and lower bound in nats that may be left to gain: a refit is compared with others.
_MOST_STEPS, _TOLERANCE = 1000, 1e-6


def refitted(rows, posterior):
    """The optimum for some rows, climbed to from a posterior nearby: Fit.

    Parameters
    ----------
    rows : Rows, with the weights that are asked about
    posterior : VariationalPosterior, measured from the origin of the rows, whose prior holds

    Raises
    ------
    DegenerateComponentError
        Where a component is left without a proper posterior.
    """
    ascent = Ascent(rows, _TOLERANCE, _MOST_STEPS)
    return ascent.newton(ascent.start_at(posterior))
