"""StepMix' two steps: latent classes, what explains them or what they explain, and the bootstrap of both.

Optional (pip install stepmix).
"""

import warnings

import numpy as np

_N_STARTS = 10  # Of the fit; refits of the bootstrap have one each.


class TwoSteps:
    """A fit of both steps.

    Parameters
    ----------
    X : (N, P) of zeros and ones
    given : (N,), the covariate or the outcome
    question : {"covariate", "outcome", "skewed outcome"}
    n_classes : int
    """

    def __init__(self, X, given, question, n_classes):
        from stepmix import StepMix

        self._X, self._given, self._question = X, given[:, None], question
        structural = "covariate" if question == "covariate" else "gaussian_diag"
        arguments = {"measurement": "binary", "structural": structural, "n_steps": 2}
        quiet = {"verbose": 0, "progress_bar": 0}
        self._model = StepMix(n_classes, n_init=_N_STARTS, random_state=0, **arguments, **quiet)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model.fit(X, self._given)

    @property
    def probabilities(self):
        """Of a one, (K, P)."""
        found = self._model.get_parameters_df().loc["measurement"].xs("pis", level="param")["value"]
        return found.to_numpy().reshape(self._model.n_components, -1)

    def estimates(self, order):
        """Slopes against the first class of an order, or means of all classes in this order."""
        return self._of(self._model.get_parameters_df(), order)

    def deviations(self, order, n_repetitions):
        """Standard deviations of the estimates over refits of both steps to resampled rows."""
        self._model.set_params(n_init=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, _ = self._model.bootstrap(
                self._X, self._given, n_repetitions=n_repetitions, progress_bar=False
            )
        refits = [self._of(own, order) for _, own in found.groupby("rep")]
        return np.std(refits, axis=0, ddof=1)

    def _of(self, parameters, order):
        own = parameters.loc["structural"].droplevel("model_name")["value"]
        if self._question != "covariate":
            return own.loc["means"].groupby(level="class_no").first().to_numpy()[order]
        own = own.loc["beta"].unstack("variable").drop(columns="intercept").to_numpy()[:, 0]
        return own[order][1:] - own[order][0]
