"""Functions of parameters: their values and standard deviations to first order (the delta method)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STEP = 1e-3  # Step of the differences, in posterior standard deviations.


@dataclass(frozen=True, eq=False)
class FunctionOfParameters:
    """Value of a function at the posterior means, and its covariance: `MeanFieldPosterior.function`.

    Attributes
    ----------
    value : ndarray
        The function at the means of its arguments, in its shape.
    std : ndarray
        Standard deviations, in the same shape.
    covariance : ndarray of shape (size, size)
        Covariance of its entries.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
    >>> from sklearn_lrvb.mean_field import MeanFieldModel, Term
    >>> terms = [Term(-0.5 * 100.0, "x.square"), Term(200.0, "x.value")]  # x ~ normal(2, 1/100)
    >>> posterior = MeanFieldModel({"x": UnivariateNormal()}, terms).fit()
    >>> posterior.function(lambda x: x**2, "x.value")
    4.00 +- 0.40
    """

    value: NDArray[np.float64]
    std: NDArray[np.float64]
    covariance: NDArray[np.float64]

    def __repr__(self) -> str:
        if np.ndim(self.value) == 0:
            # Two digits of the standard deviation, and the value to the same place.
            plain = 1e-3 < self.std < 1e5
            places = max(0, 1 - int(np.floor(np.log10(self.std)))) if plain else 0
            written = f".{places}f" if plain else ".4g"
            return f"{self.value:{written}} +- {self.std:{written}}"
        shown = [np.array2string(array, precision=4, threshold=20) for array in (self.value, self.std)]
        return f"FunctionOfParameters(value={shown[0]}, std={shown[1]})"


def value_and_jacobian(function, means, deviations):
    """The function at the means, and its derivatives by central differences of fourth order.

    Parameters
    ----------
    function : callable, arrays -> array or number
    means : list of ndarray
        The arguments.
    deviations : list of ndarray, of the same shapes
        Standard deviations, the units of the steps.

    Returns
    -------
    value : ndarray
    jacobian : ndarray of shape (size of the value, number of entries of all arguments)

    Raises
    ------
    ValueError
        The function is not finite, or its shape changes.
    """
    value = _evaluate(function, means, None)
    columns = []
    for place, deviation in enumerate(deviations):
        for index in np.ndindex(*deviation.shape):
            step = _STEP * deviation[index]
            if not step > 0:
                columns.append(np.zeros(value.size))
                continue
            moved = []
            for multiple in (-2, -1, 1, 2):
                arguments = [mean.copy() for mean in means]
                arguments[place][index] += multiple * step
                moved.append(_evaluate(function, arguments, value.shape).ravel())
            columns.append((moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]) / (12 * step))
    return value, np.column_stack(columns)


def _evaluate(function, arguments, shape):
    value = np.asarray(function(*arguments), dtype=float)
    if shape is not None and value.shape != shape:
        raise ValueError(f"The function returns the shapes {shape} and {value.shape} for similar arguments.")
    if not np.all(np.isfinite(value)):
        where = "near the posterior means" if shape is not None else "at the posterior means"
        raise ValueError(f"The function is not finite {where}: it returns {value}.")
    return value
