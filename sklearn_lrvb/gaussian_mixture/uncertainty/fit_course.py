"""How a fit went, and what would bring it closer to a strict optimum: for messages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FitCourse:
    """How a fit went.

    Attributes
    ----------
    n_iter : int
    converged : bool
    max_iter : int
    tol : float
    solver : str
    is_drawn : bool, whether its start was drawn at random, and not given
    stopped : bool, whether a callback ended it
    """

    n_iter: int
    converged: bool
    max_iter: int
    tol: float
    solver: str
    is_drawn: bool
    stopped: bool = False

    def __str__(self):
        return f"n_iter_ = {self.n_iter}, {'converged' if self.converged else 'not converged'}"

    @property
    def is_of_newton(self):
        """Whether the solver leaves saddle points."""
        return self.solver == "newton"

    def ways_closer(self):
        """The arguments that would have brought the fit closer to an optimum, in words."""
        if self.stopped:
            ways = ["fit without the callback that stopped it"]
        elif self.converged:
            ways = [f"lower tol (now {self.tol:g})"]
        else:
            ways = [f"raise max_iter (now {self.max_iter}), and see that the fit converges"]
        if not self.is_of_newton:
            ways.append("use solver='newton'")
        return ", or ".join(ways)

    def other_starts(self):
        """The arguments that would have made the fit start elsewhere, in words: the end of a list."""
        if self.is_drawn:
            return "raise n_init, or change random_state"
        return "or start from other responsibilities (init_params)"
