"""Mutation run: the tests notice faults that a person could make.

    python .ci/faults.py             # all faults, two at a time; some minutes
    python .ci/faults.py 0 7 12      # some of them, by number
    python .ci/faults.py --wide 12   # with all tests of the mixture, of linear response and of rows
    python .ci/faults.py --check     # none: only whether the list follows the code

Every fault replaces a piece of code that occurs once in its file: the run stops where it does not, so that
the list follows the code. The tests named with a file are run in a copy of the tree with one fault in it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# A file below sklearn_lrvb : tests below tests/, then faults, code => faulty code. "gm" is gaussian_mixture.
FAULTS = """
gm/e_step/frames.py : gm/e_step gm/test_missing_values.py
  self._offsets, bent - slope) => self._offsets, bent + slope)
  about_offsets - mixed - structure.transposed(mixed) => about_offsets - 2.0 * mixed
  return frame if frame.amplification < MAX_AMPLIFICATION else OwnFrames(posterior) => return frame
gm/e_step/hidden_directions.py : gm/test_missing_values.py gm/information gm/uncertainty/test_leave_one_out.py
  self.log_volumes + 0.5 * self.reg_covar => self.log_volumes - 0.5 * self.reg_covar
  return self.projections - self.reg_covar => return self.projections + self.reg_covar
  return first, 2.0 * curvature * => return first, curvature *
mixtures/responsibilities.py : mixtures/test_responsibilities.py mixtures/test_prediction.py gm/e_step
  relative -= np.einsum("kn,kn...->n...", responsibilities, relative) => relative -= 0.0
  np.cumsum(responsibilities[:-1], axis=0) => np.cumsum(responsibilities[1:], axis=0)
mixtures/e_step.py : mixtures/test_prediction.py gm/e_step gm/test_sample_weight.py
  block.weighted(expectation.log_normalizer).sum() => expectation.log_normalizer.sum()
gm/posterior/variational_posterior.py : gm/posterior gm/information/test_observed_information.py mixtures/test_ascent.py gm/fitting/test_degenerate_fits.py
  first = of_rows.first + self.prior => first = of_rows.first - self.prior
  in_q = -expected.log_det_covariances if prior.independent else expected => in_q = expected
  return self.reg_covar * self.structure.power * => return self.reg_covar *
  prior.degrees_of_freedom + structure.power * self.group_counts => prior.degrees_of_freedom + self.group_counts
  variance = 0.25 * structure.wisharts => variance = 0.5 * structure.wisharts
  varies = np.all(structure => varies = np.any(structure
gm/posterior/mixture_prior.py : gm/posterior gm/fitting/test_row_span.py gm/fitting/test_noise_cost.py
  return self.prior_variance + self.reg_covar * counts => return self.prior_variance
  wisharts.freedom_of_means if self.independent else 0 => wisharts.freedom_of_means
mixtures/weight_priors.py : mixtures/test_weight_priors.py gm/uncertainty/test_targets.py
  len(stick), k=-1).T => len(stick)).T
  np.eye(self.n_components) - self.mean(counts)[:, None] => np.eye(self.n_components) - self.mean(counts)
  return mean / mean.sum() => return mean
gm/covariance_structures/structures.py : gm/covariance_structures gm/test_value_range.py gm/uncertainty/test_leave_one_out.py
  np.linalg.norm(shifts) > _FAR => np.linalg.norm(shifts) < _FAR
  precisions = self.gram(self.transposed(whiteners)) => precisions = self.gram(whiteners)
  np.broadcast_to(2.0 * whiteners * curvature => np.broadcast_to(whiteners * curvature
gm/covariance_structures/structures.py : gm/covariance_structures gm/information gm/test_missing_values.py
  monomials[quadratic:] += spread => monomials[quadratic:] -= spread
gm/covariance_structures/wisharts.py : gm/covariance_structures gm/fitting/test_component_statistics.py gm/posterior
  self.freedom_of_means = self.power * self.n_means => self.freedom_of_means = self.n_means
  log_det_scaled = log_det_scatter + self._size => log_det_scaled = log_det_scatter - self._size
gm/covariance_structures/full_pair.py : gm/covariance_structures/test_full_pair.py gm/information
  own -= monomials[some, :1] * scaled_origin => own += monomials[some, :1] * scaled_origin
gm/covariance_structures/random_factors.py : gm/posterior_sampling/test_densities.py gm/posterior_sampling/test_copula.py mixtures/posterior_sampling/test_exact_posterior.py
  found += 0.5 * self._earlier => found += self._earlier
  log_slopes - normals / np.square(self.scale) => log_slopes - normals / self.scale
gm/information/missing_information.py : gm/information gm/test_sample_weight.py
  blocks[l, k] = blocks[k, l].T => blocks[l, k] = blocks[k, l]
  own[is_shared] -= other[is_shared] => own[is_shared] += other[is_shared]
  weights * (information[k] + information[l]) => weights * information[k]
  expectation.responsibilities * np.sqrt(block.counts) => expectation.responsibilities * block.counts
gm/information/columns.py : gm/information gm/test_sample_weight.py
  np.sqrt(block.counts[ambiguous])[row] => np.sqrt(block.counts)[row]
  kernel[np.ix_(used[some], others)] += products => kernel[np.ix_(used[some], others)] = products
gm/information/hidden_information.py : gm/information gm/test_missing_values.py
  second *= 4.0 * scaled[k] => second *= 2.0 * scaled[k]
  hidden.projections[0].T / self._structure.power => hidden.projections[0].T
gm/information/observed_information.py : gm/information gm/test_missing_values.py
  ways = sorted(costs, key=costs.__getitem__) => ways = sorted(costs, key=costs.__getitem__, reverse=True)
  columns.shares.min() > round_off(len(complete)) => columns.shares.min() > -1.0
mixtures/acceleration.py : mixtures/test_acceleration.py mixtures/test_ascent.py
  2.0 * min(recent) > recent[0] => 2.0 * min(recent) > recent[-1]
mixtures/ascent.py : mixtures/test_ascent.py mixtures/test_restarts.py gm/fitting/test_degenerate_fits.py mixtures/test_callbacks.py
  ends = {number: replace(fit, stopped=True) for number, fit in tried.items()} => pass
  self.information.definiteness("probe") is Definiteness.INDEFINITE => False
  away = self._escaped(fit) if fit.is_indefinite else None => away = None
  after_step(0.5**halving * step) => after_step(step)
  return 0.5 * distance**2 < => return distance**2 <
  n_ends = 1 + ceil( => n_ends = ceil(
gm/fitting/component_statistics.py : gm/fitting/test_component_statistics.py mixtures/test_moves.py
  np.log(first / (first + second - least) * => np.log(first / (first + second) *
  centred_means[second] - least * prior.mean => centred_means[second]
mixtures/moves.py : mixtures/test_moves.py gm/fitting/test_component_statistics.py
  np.subtract(xlogy(merged, merged), own[group].sum(axis=0), => np.subtract(own[group].sum(axis=0), xlogy(merged, merged),
mixtures/search.py : gm/fitting/test_search.py latent_class/test_splits.py
  gains = self._gains - statistics.gains_of_weights(merged, present) => gains = self._gains.copy()
  lower_bound - weight_contribution) => lower_bound)
latent_class/halves.py : latent_class/test_splits.py
  sums[[split.component, second]] = share * of_halves => sums[[second, second]] = share * of_halves
  axes = np.linalg.eigh((comparable.T * weights) @ comparable)[1][:, ::-1] => axes = np.linalg.eigh((comparable.T * weights) @ comparable)[1]
gm/fitting/row_span.py : gm/fitting/test_row_span.py
  excess[np.diag_indices_from(excess)] -= variance => excess[np.diag_indices_from(excess)] -= 0.0
  Complement(rows.n_features - size, => Complement(rows.n_features - n_samples,
mixtures/uncertainty/deletion.py : gm/uncertainty/test_leave_one_out.py
  result.moments - posterior.with_noise(of_row) => result.moments - of_row
linear_response/solvers.py : linear_response gm/information gm/test_evidence.py
  squared[active] / previous[active] * along => previous[active] / squared[active] * along
  return super().log_determinant + of_rest => return super().log_determinant
  right = solution[block] + solve_triangular( => right = solution[block] - solve_triangular(
linear_response/covariance.py : linear_response/test_covariance.py
  deviations[:, None] * matrix * deviations => deviations[:, None] * matrix
mixtures/uncertainty/targets.py : gm/uncertainty/test_targets.py gm/uncertainty/test_prior_sensitivity.py
  return scaled.T / scale => return scaled.T
  return direct - self.response(intercepts[..., None]) => return direct
gm/uncertainty/targets.py : gm/uncertainty/test_targets.py gm/uncertainty/test_prior_sensitivity.py
  if posterior.prior.independent: => if False:
gm/uncertainty/margins.py : gm/uncertainty/test_posterior_summary.py gm/uncertainty/test_targets.py
  sums + differences - 16.0 * entries => sums + differences - 8.0 * entries
  plus[1] - plus[0], minus[2] - minus[1] => plus[1] - plus[0], minus[1] - minus[0]
  self._moment(self.shape - 2.0 => self._moment(self.shape - 1.0
gm/uncertainty/scores_without_rows.py : gm/uncertainty/test_leave_one_out.py gm/test_sample_weight.py
  freedom_before / structure.power + added => freedom_before / structure.power - added
mixtures/uncertainty/leave_one_out.py : gm/uncertainty/test_leave_one_out.py gm/test_sample_weight.py
  left_out = -counts * np.linalg.solve( => left_out = -np.linalg.solve(
gm/uncertainty/influence.py : gm/uncertainty/test_influence_functions.py gm/test_missing_values.py gm/test_sample_weight.py gm/uncertainty/test_robust_covariance.py
  moved = centred_on_average(pulled_back, r) => moved = -centred_on_average(pulled_back, r)
  slopes -= hidden.onto(slopes) => pass
mixtures/uncertainty/influence.py : gm/uncertainty/test_robust_covariance.py
  np.outer(sums, sums) / rows.total_weight => np.outer(sums, sums) / rows.n_samples
mixtures/estimator/fitted.py : gm/test_fitted.py
  if given.get(name) is not value => if given.get(name, value) is not value
mixtures/uncertainty/uncertainty.py : gm/test_fitted.py
  array.flags.writeable = False => array.flags.writeable = True
gm/uncertainty/prior_sensitivity.py : gm/uncertainty/test_prior_sensitivity.py
  per_component(0.25 * excess / structure.power) => per_component(0.25 * excess)
  posterior.n_features / posterior.mean_precision**2 => posterior.n_features / posterior.mean_precision
mixtures/posterior_sampling/copula.py : gm/posterior_sampling mixtures/posterior_sampling
  np.hstack([of_logits, of_components]) @ self.root + normals => np.hstack([of_logits, of_components]) @ self.root
  logits * (1.0 - share), -logits * share => logits * share, -logits * (1.0 - share)
gm/posterior_sampling/likelihood.py : gm/posterior_sampling/test_densities.py mixtures/posterior_sampling/test_exact_posterior.py
  group_counts = structure.power * structure => group_counts = structure
mixtures/posterior_sampling/sticks.py : gm/posterior_sampling/test_densities.py mixtures/posterior_sampling/test_exact_posterior.py
  axis=1)[:, ::-1] - in_order => axis=1)[:, ::-1]
mixtures/posterior_sampling/labels.py : mixtures/posterior_sampling/test_exact_posterior.py gm/test_evidence.py
  _TIE_BREAK * np.arange(n_components) - 2.0 * shares => _TIE_BREAK * np.arange(n_components) - shares
  np.sum(~occupied(counts)) + 1) => np.sum(~occupied(counts)))
mixtures/posterior_sampling/chain_draws.py : mixtures/posterior_sampling/test_exact_posterior.py
  1.0 - of_first * self._first - of_second => 1.0 - of_first * self._first + of_second
mixtures/posterior_sampling/chains.py : mixtures/posterior_sampling/test_exact_posterior.py
  momenta * cosine - chains.normals => momenta * cosine + chains.normals
gm/posterior_sampling/gibbs.py : mixtures/posterior_sampling/test_exact_posterior.py
  / np.sqrt(mean_precision)[..., None] => / mean_precision[..., None]
mixtures/posterior_sampling/importance.py : mixtures/posterior_sampling/test_pareto_smoothing.py
  _PRIOR_WEIGHTS * _PRIOR_SHAPE => _PRIOR_SHAPE
row_blocks/array_rows.py : row_blocks gm/test_missing_values.py
  positions, side="right") => positions, side="left")
  return self.first + index, => return index,
  self.total(sum_of_squares) / self.seen_weight => self.total(sum_of_squares) / self.total_weight
row_blocks/blocks.py : row_blocks gm/test_sample_weight.py
  block.weighted(block.seen).sum(axis=1) => block.seen.sum(axis=1)
  self.starts, place, side="right") => self.starts, place, side="left")
gm/fitted.py : gm/test_fitted.py
  arrays["mean_prior_"] - origin => arrays["mean_prior_"]
mixtures/uncertainty/uncertainty.py : gm/test_fitted.py
  array.flags.writeable = False => array.flags.writeable = True
gm/arguments.py : gm/test_estimator.py gm/fitting/test_degenerate_fits.py
  mean = given - rows.origin => mean = given
  np.sqrt(rows.variances + np.square(rows.origin)) => np.sqrt(rows.variances)
mixtures/uncertainty/groups.py : mixtures/uncertainty/test_groups.py
  root *= np.sqrt(factors[groups.strata, None]) => root *= factors[groups.strata, None]
  np.concatenate(kept) - means[groups.strata] => np.concatenate(kept)
  gram - (factors[:, None] * means).T @ total => gram
  (total - largest < _OF_OTHER_GROUPS) => (total < _OF_OTHER_GROUPS)
  groups.chosen(counts.sum(axis=1) > 0) => groups.chosen(counts.sum(axis=1) >= 0)
mixtures/uncertainty/leave_group_out.py : mixtures/uncertainty/test_leave_a_group_out.py
  np.eye(len(columns)) + root.T @ images => np.eye(len(columns)) - root.T @ images
  complete.solve(of_others[:, None])[:, 0] => complete.solve(statistics[:, None])[:, 0]
gm/posterior_sampling/copula.py : mixtures/uncertainty/test_groups.py
  structure.transformed(structure.transposed(draws.factors), changes) => changes
mixtures/estimator/answers.py : mixtures/uncertainty/test_groups.py
  self.uncertainty, name, np.sqrt(np.maximum(np.diag(self.covariance([name], None)), 0.0)), np.inf => self.uncertainty, name, np.sqrt(np.maximum(np.diag(self.covariance([name], None)), 0.0)), 3
row_blocks/grouping.py : mixtures/uncertainty/test_groups.py
  share = np.sqrt(1.0 - len(own) / size) => share = 1.0 - len(own) / size
  * (len(own) / (len(own) - 1.0)) => * 1.0
  return len(self) - self.n_strata => return len(self) - 1
  is_other = of_groups[codes] != by_row => is_other = of_groups[codes] < by_row
mixtures/posterior_sampling/occupied.py : mixtures/posterior_sampling/test_occupied.py gm/test_number_of_clusters.py
  log_orders + gammaln(total) - => log_orders + gammaln(concentration) -
  is_counted &= divergences <= => is_counted &= -1e9 <=
  slope[own] += found.n_effective * (found.shares - shares) => slope[own] += found.n_effective * (found.shares - 0.9 * shares)
gm/posterior_sampling/likelihood.py : gm/test_number_of_clusters.py gm/posterior_sampling/test_draws_with_noise.py
  replace(prior, mean_precision=factor * prior.mean_precision), => replace(prior, mean_precision=prior.mean_precision / factor),
mixtures/conclusions/number_evidence.py : mixtures/posterior_sampling/test_occupied.py gm/test_number_of_clusters.py
  weights = np.append(0.0, self._shares(k, log_parts))[n_occupied] / visited => weights = 1.0 / visited
  log_part -= log_prior_factor(t, t, *self._of_labels) => log_part -= log_prior_factor(t + 1, t, *self._of_labels)
mixtures/conclusions/number_of_clusters.py : gm/test_number_of_clusters.py
  falls = slopes - slopes[best] => falls = slopes[best] - slopes
mixtures/conclusions/model_choice.py : gm/test_number_of_clusters.py
  reached -= posterior.prior.weights.log_evidence(posterior.label_counts) => reached -= 0.0
gm/estimator.py : gm/test_number_of_clusters.py
  names = "covariance_prior", "mean_precision_prior" => names = ("covariance_prior",)
latent_class/estimator.py : latent_class/test_conclusions.py
  changed |= {name: 0.5 * getattr(self, name) for name in halved} => pass
latent_class/column_families/numeric.py : latent_class/test_conclusions.py
  score = 0.5 / kappa - 0.5 * np.square(scaled) => score = 0.5 / kappa - np.square(scaled)
mixtures/conclusions/partition_search.py : gm/test_partition_search.py
  costs[self.sizes == 0] = np.inf => pass
mixtures/conclusions/partitions.py : gm/test_partition_posterior.py
  others = sizes[clusters] - 1 => others = sizes[clusters]
  (shared[own] - 1.0) / np.maximum(others, 1) => shared[own] / np.maximum(others, 1)
  drawn.sizes[:, :, None] - overlaps => drawn.sizes[:, :, None]
  np.flatnonzero(given.which_count())[index] => index
mixtures/posterior_sampling/row_labels.py : mixtures/posterior_sampling/test_row_labels.py
  UniformStream(self._seed + number, batch.start) => UniformStream(self._seed, batch.start)
mixtures/weight_priors.py : mixtures/test_weight_priors.py gm/test_noise.py gm/uncertainty/test_prior_sensitivity.py
  return dirichlet.covariance_of_log(self.of_background(counts)) @ [1.0, self.n_components] => return dirichlet.covariance_of_log(self.of_background(counts)) @ [1.0, 1.0]
  of_components = own[1] / own.sum() * self.of_components.mean(counts[:-1]) => of_components = self.of_components.mean(counts[:-1])
gm/posterior/background.py : gm/test_noise.py gm/test_missing_values.py
  seen_shares * (self.log_density + half_log_determinant) => seen_shares * self.log_density
gm/posterior/tails.py : gm/fitting/test_moves_of_heavy_tails.py gm/information/test_observed_information.py gm/uncertainty/test_influence_functions.py
  return _RATE * self.fitted - _SHAPE => return _RATE * self.fitted
  return half * (1.0 - scales.mean) / np.sqrt(shape), rest => return half / np.sqrt(shape), rest
gm/fitting/noise_density.py : gm/fitting/test_noise_density.py gm/test_noise.py
  return -float(min(of_rows + price, of_core) + price) => return -float(max(of_rows + price, of_core) + price)
  return -float(min(of_rows + price, of_core) + price) => return -float(min(of_rows, of_core))
gm/fitting/core.py : gm/fitting/test_noise_density.py gm/fitting/test_far_out.py
  chi2.cdf(chi2.ppf(share, n_dimensions), n_dimensions + 2) / share => share
  or are_few else => else
gm/fitting/far_out.py : gm/fitting/test_far_out.py
  responsibilities[self.are_aside, -1] = 1.0 => pass
  rules = (found.are_far_out, found.are_in_sparser_half, found.with_smallest_cluster(n_components)) => rules = (found.are_far_out, found.are_in_sparser_half)
gm/arguments.py : gm/test_heavy_tails.py
  max(0.5 * degrees_of_freedom - 1.0, 0.0) => max(0.5 * degrees_of_freedom - 1.0, 0.0) * 0.0
  parts.has_background or core.is_far_exceeded => parts.has_background or not core.is_far_exceeded
mixtures/estimator/posterior_methods.py : gm/test_heavy_tails.py
  0.5 * (fitted.posterior.log_volume - information.log_determinant) => 0.5 * (-information.log_determinant)
latent_class/influence.py : latent_class/test_influence_of_rows.py
  total += r * (self._by_class[:, k] @ features) => total += self._by_class[:, k] @ features
latent_class/information.py : latent_class/test_error_bars.py
  weights = counted[k] * r[l] => weights = r[k] * r[l]
  missing[:, k, :, k] += product => missing[:, k, :, k] += 2.0 * product
latent_class/prior_moves.py : latent_class/test_influence_of_rows.py
  .reshape(len(numbers), -1) - target.responses(direct) => .reshape(len(numbers), -1)
latent_class/draws.py : latent_class/test_draws.py
  found[:, place] -= responses[:, place] / np.square(self._deviations[place]) => pass
latent_class/column_families/numeric.py : latent_class/test_column_families.py
  + scalars[..., 1] * by_scaled) => )
latent_class/given_tables.py : latent_class/test_fit_identities.py
  np.add.reduceat(weights, starts) => np.diff(np.append(starts, len(order))).astype(float)
"""  # noqa: E501
WIDE = "gaussian_mixture linear_response row_blocks"
AT_ONCE = 2  # Processes; the tests of one fault run in one.
TREE = Path(__file__).resolve().parent.parent


def table():
    """The faults: a list of (file, piece of code, faulty piece, tests)."""
    faults, of_file = [], ("", "")
    for line in FAULTS.strip().replace("gm/", "gaussian_mixture/").splitlines():
        if line.startswith("  "):
            piece, faulty = line.strip().split(" => ")
            faults.append((of_file[0], piece, faulty, of_file[1]))
        else:
            of_file = line.split(" : ")
    for path, piece, _, _ in faults:
        n_times = (TREE / "sklearn_lrvb" / path).read_text().count(piece)
        if n_times != 1:
            raise SystemExit(f"{path} has {n_times} times, and not once: {piece}")
    return faults


def is_noticed(path, piece, faulty, tests):
    """Whether the tests fail in a copy of the tree with the fault in it, and the first failure."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("sklearn_lrvb", "tests", "benchmarks", "docs", "examples"):
            shutil.copytree(TREE / name, Path(folder, name))
        shutil.copy(TREE / "pyproject.toml", folder)
        mutant = Path(folder, "sklearn_lrvb", path)
        mutant.write_text(mutant.read_text().replace(piece, faulty))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
        environment = os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}
        place = Path(folder, "tests")
        run = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if run.returncode not in (0, 1):  # Neither all passed nor a test failed.
        first = re.search(r"^(ERROR|E  ).*", run.stdout, re.MULTILINE)
        return run.returncode == 2, first.group() if first else run.stdout[-500:] + run.stderr[-500:]
    first = re.search(r"^FAILED (\S+)|^ERROR (\S+)", run.stdout, re.MULTILINE)
    return run.returncode == 1, first.group() if first else ""


def main(arguments):
    """Run some faults, or all of them, and print which were noticed."""
    faults, is_wide = table(), "--wide" in arguments
    if "--check" in arguments:
        return False
    numbers = [int(word) for word in arguments if word != "--wide"] or range(len(faults))

    def run(number):
        path, piece, faulty, tests = faults[number]
        return number, *is_noticed(path, piece, faulty, WIDE if is_wide else tests)

    score = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, noticed, first in pool.map(run, numbers):
            score += noticed
            path, piece, faulty, _ = faults[number]
            print(
                f"{number:3} {'noticed ' if noticed else 'SURVIVED'} {path}: {piece} => {faulty}  {first}",
                flush=True,
            )
    print(f"{score} of {len(numbers)} faults noticed")
    return score < len(numbers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
