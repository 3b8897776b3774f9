"""Whether linear response is right: a state and a sentence, from how far draws by it are from the posterior.

r is the log density of the posterior less that of draws by linear response, at these draws. The bounds of
"good" were chosen on half of the tables of the benchmark "trust", against long runs of a sampler; those of
"rough" on 70 fits before. The theory page "The exact posterior" says how often the rule was right.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What to think of linear response.

    Attributes
    ----------
    shift : float
        The largest shift of a mean, in standard deviations by linear response.
    variance : float
        Variance of r over the draws; of more than 20 parameters it may be divided by the root of their number
        over 20. 0 where linear response is exact.
    little_variance : float, default=0.07
        Largest variance for the state "good"; it depends on the kind of model.
    sd_ratio : float, default=1.0
        Standard deviation of draws by linear response over the one that is reported, or the reciprocal where
        that is larger; the largest of all parameters.
    has_empty : bool, default=False
        Whether some components hold no rows. Draws by linear response keep them empty. In the exact posterior
        they may gain rows: in fits that are good otherwise, standard deviations were then up to four times as
        large, and weights moved by up to 0.3 standard deviations.
    """

    shift: float
    variance: float
    little_variance: float = 0.07
    sd_ratio: float = 1.0
    has_empty: bool = False

    @property
    def state(self) -> str:
        """One of "good", "rough" and "wrong"; "wrong" where a number is nan."""
        if self.shift <= 0.08 and self.variance <= self.little_variance and self.sd_ratio <= 1.2:
            return "good"
        is_rough = self.shift <= 0.2 and self.variance <= 0.3 and self.sd_ratio <= 1.5
        return "rough" if is_rough else "wrong"

    @property
    def is_enough(self) -> bool:
        """Whether the exact posterior has nothing to add."""
        return self.state == "good" and not self.has_empty

    @property
    def sentence(self) -> str:
        """The same in words, with the error that remains."""
        condition = ", if components without rows get none" * self.has_empty
        return {
            "good": f"Linear response is good: sds within 10 %, means within 0.2 sd{condition}.",
            "rough": "Linear response is rough: sds mostly within a third, means within 0.6 sd.",
            "wrong": "Linear response may be wrong: sds by more than a third, means by more than 0.6 sd.",
        }[self.state]
