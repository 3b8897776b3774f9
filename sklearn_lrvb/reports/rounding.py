"""Numbers as text, with as many digits as are known."""

import math


def rounded(number, sd, is_plain=True):
    """A number to two digits of a standard deviation: "0.31", or "3.1e-12" where it is not plain.

    Where there is no standard deviation, it has three digits of its own.
    """
    if not (0.0 < sd < math.inf and math.isfinite(number)):
        return "NaN" if math.isnan(number) else f"{number:.3g}"
    last = exponent(sd, 1) - 1  # The last digit counts this power of ten.
    rounded = round(number, -last) + 0.0  # The sum turns -0.0 into 0.0.
    if is_plain:
        return f"{rounded:.{max(0, -last)}f}"
    return f"{rounded:.{max(0, exponent(rounded, 14) - last)}e}" if rounded else "0"


def exponent(number, n_decimals):
    """Exponent of a number when it is written with so many decimals."""
    return int(f"{number:.{n_decimals}e}".partition("e")[2])


def p_in_words(p):
    """A p-value as text: "p = 0.02", or "p < 0.001"."""
    return "p < 0.001" if p < 1e-3 else f"p = {p:.2g}"
