"""Gibbs sampling by R's bayesm, with the standard deviations of its draws."""

from dataclasses import dataclass

from benchmarks.analysis.chains import sd_errors
from benchmarks.rivals import bayesm
from benchmarks.rivals.standard_errors.protocol import StandardErrors

_SEED = 1  # makes another chain than the stored one, whose seed is 0


@dataclass(frozen=True)
class Gibbs:
    """rnmixGibbs, started at the labels of our optimum; its burn-in is part of its time."""

    name = "Gibbs, bayesm"

    def missing(self):
        return bayesm.missing()

    def version(self):
        return f"bayesm {bayesm.versions()['bayesm']}"

    def standard_errors(self, task):
        effort = task.effort
        labels = task.optimum.predict(task.X)
        chain = bayesm.sample(task.X, labels, task.prior, effort.n_effective, effort.most_draws, _SEED)
        thousand = chain.seconds_for(1000)
        columns = {
            "draws": len(chain.draws),
            "effective_size": float(chain.effective_sizes.min()),
            "sd_error": float(sd_errors(len(chain.draws), chain.effective_sizes).max()),
            "warm_up_seconds": float(chain.burn_in_seconds),
            "thousand_draws_seconds": float(thousand),
        }
        sds = chain.draws.std(axis=0, ddof=1)
        return StandardErrors(sds, float(chain.burn_in_seconds + thousand), columns)
