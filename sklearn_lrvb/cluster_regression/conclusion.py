"""An estimate of a regression as a conclusion, of which the deciding rows are sought."""

from weakref import WeakKeyDictionary

from sklearn_lrvb.answers.conclusions import ConclusionError, EstimateConclusion


class RegressionConclusion(EstimateConclusion):
    """An estimate of a second step at the fit.

    Parameters
    ----------
    step : SecondStep
    entry : callable (D,) -> float, (D,), the estimate and its derivatives
    text, interval, side : as in `EstimateConclusion`
    """

    def __init__(self, step, entry, text, interval=None, side=0.0):
        super().__init__(text, interval, side)
        self._step, self._entry, self._steps = step, entry, WeakKeyDictionary()

    def _at(self, optimum):
        """The second step at an optimum, and the derivatives of the estimate: SecondStep, (D,)."""
        if self._step.rows.rows is None:  # Results hold no rows of X.
            self._step = self._step.seeing(optimum.rows)
            if optimum.fit is None and optimum.rows is not None:
                self._step.require_order(optimum.rows)
        if optimum.fit is None:
            step = self._step
        elif optimum in self._steps:
            step = self._steps[optimum]
        else:
            step = self._steps[optimum] = self._step.at(optimum.rows, optimum.posterior)
            if not step.converged:
                raise ConclusionError("The regression did not converge without these rows.")
        return step, self._entry(step.parameters)[1]

    def _estimate(self, optimum):
        return self._entry(self._at(optimum)[0].parameters)[0]

    def _variance(self, optimum):
        step, slopes = self._at(optimum)
        return float(slopes @ step.covariance(optimum.fitted.targets, optimum.information) @ slopes)

    def _influence(self, optimum):
        step, slopes = self._at(optimum)
        return step.influence_functions(optimum.fitted.targets, optimum.information, slopes[None])
