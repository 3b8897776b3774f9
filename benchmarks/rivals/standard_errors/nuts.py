"""NUTS by numpyro: the posterior with the assignments summed out, in float64 on one thread.

It is helped as far as a user of our library could help it: it starts at our optimum, in coordinates whitened
by the mean-field posterior (`unconstrained.py`). The correlations that ambiguous rows add are left to the
mass matrix: on the problem "plane" a dense one makes four times as many effective draws of the slowest
parameter as a diagonal one.

Draws on alternating sides of the mean make the mean more accurate than independent draws would, but not the
sds: their accuracy follows from the effective size of the squared deviations.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from time import process_time

import numpy as np

from benchmarks.rivals.standard_errors.protocol import StandardErrors
from benchmarks.rivals.standard_errors.unconstrained import UnconstrainedPosterior

_DRAWS_AT_ONCE = 100
_WARM_UP_OF_DENSE = 20  # least number of warm-up draws for each row of a dense mass matrix
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@dataclass(frozen=True)
class Nuts:
    """numpyro's `NUTS` at its defaults, with a dense mass matrix where the warm-up is long enough."""

    name = "NUTS, numpyro"

    def missing(self):
        return (
            "" if find_spec("numpyro") else 'numpyro is not installed (pip install "sklearn-lrvb[benchmark]")'
        )

    def version(self):
        import numpyro

        return f"numpyro {numpyro.__version__}"

    def standard_errors(self, task):
        """Standard errors from one chain, which ends when its slowest parameter has the effective draws."""
        _start_jax()
        effort = task.effort
        begin = process_time()
        posterior = UnconstrainedPosterior(task.X, task.prior, task.optimum)
        advance, state = _compiled(posterior, effort.n_warm_up)
        compile_seconds = process_time() - begin
        begin = process_time()
        for _ in range(0, effort.n_warm_up, _DRAWS_AT_ONCE):
            state, _ = advance(state)
        state.z.block_until_ready()
        warm_up_seconds = process_time() - begin
        draws, effective, seconds = [], 0.0, 0.0
        while not draws or (effective < effort.n_effective and warm_up_seconds + seconds < effort.longest):
            begin = process_time()
            state, more = advance(state)
            vectors = np.asarray(more)
            seconds += process_time() - begin
            draws += [posterior.constrained(vector) for vector in vectors]
            effective = _least_effective_size(np.array(draws))
        thousand = 1000 * seconds / effective
        effective_of_squares = _least_effective_size(np.square(draws - np.mean(draws, axis=0)))
        columns = {
            "draws": len(draws),
            "effective_size": effective,
            "effective_size_of_squares": effective_of_squares,
            "sd_error": (2 * effective_of_squares) ** -0.5,
            "compile_seconds": compile_seconds,
            "warm_up_seconds": warm_up_seconds,
            "thousand_draws_seconds": thousand,
        }
        sds = np.std(draws, axis=0, ddof=1)
        return StandardErrors(sds, compile_seconds + warm_up_seconds + thousand, columns)


def _start_jax():
    """Import what is used, and make an array, which initialises JAX."""
    os.environ.setdefault("XLA_FLAGS", _ONE_THREAD)  # read when the first array is made
    import jax
    import numpyro.infer  # noqa: F401

    jax.config.update("jax_enable_x64", True)
    jax.numpy.zeros(1).block_until_ready()


def _compiled(posterior, n_warm_up):
    """A compiled function that makes some draws, state -> (state, vectors), and the first state."""
    import jax
    from jax import numpy as jnp
    from numpyro.infer import NUTS

    dense = n_warm_up >= _WARM_UP_OF_DENSE * posterior.size
    kernel = NUTS(potential_fn=lambda vector: -posterior.log_density(vector, jnp), dense_mass=dense)
    state = kernel.init(jax.random.key(0), n_warm_up, jnp.zeros(posterior.size), (), {})

    def one_draw(state, _):
        state = kernel.sample(state, (), {})
        return state, state.z

    advance = jax.jit(lambda state: jax.lax.scan(one_draw, state, length=_DRAWS_AT_ONCE))
    return advance.lower(state).compile(), state


def _least_effective_size(draws):
    """Effective size of the slowest column of one chain, (n_draws, D)."""
    from numpyro.diagnostics import effective_sample_size

    return float(effective_sample_size(draws[None]).min())
