"""Mutation run: the tests notice faults that a person could make.

    python .ci/faults.py             # all faults, two at a time; some minutes
    python .ci/faults.py 0 7 12      # some of them, by number
    python .ci/faults.py --wide 12   # with all fast tests of the mixture, of linear response and of rows
    python .ci/faults.py --check     # none: only whether the list follows the code

Every fault replaces a piece of code that occurs once in its file: the run stops where it does not, so that
the list follows the code. The tests named with a file, but the slow ones, are run in a copy of the tree with
one fault in it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# A file below sklearn_lrvb : tests below tests/, then faults, code => faulty code.
FAULTS = """
gaussian/e_step/coordinates.py : gaussian/e_step estimators/test_missing_values.py
  self._offsets, bent - slope) => self._offsets, bent + slope)
  about_offsets - mixed - structure.transposed(mixed) => about_offsets - 2.0 * mixed
  return coordinates if coordinates.amplification < MAX_AMPLIFICATION else OwnCoordinates(posterior) => return coordinates
gaussian/e_step/missing_directions.py : estimators/test_missing_values.py gaussian/information gaussian/answers/test_leave_one_out.py
  self.log_volumes + 0.5 * self.noise_squares => self.log_volumes - 0.5 * self.noise_squares
  return self.projections - self._entries(maps => return self.projections + self._entries(maps
  return first, 2.0 * curvature * => return first, curvature *
mixture/e_step.py : mixture/test_e_step.py mixture/test_prediction.py gaussian/e_step estimators/test_sample_weight.py
  relative -= np.einsum("kn,kn...->n...", responsibilities, relative) => relative -= 0.0
  np.cumsum(responsibilities[:-1], axis=0) => np.cumsum(responsibilities[1:], axis=0)
  log_normalizer * block.sample_weight => log_normalizer
gaussian/posterior/learned_prior.py : test_robust_reference.py estimators/test_learned_prior.py gaussian/answers gaussian/information/test_observed_information.py gaussian/fitting/test_steps_of_the_learned_prior.py estimators/test_heavy_tails.py
  (shape - b * rate - half * of_shares) / => (shape - b * rate + half * of_shares) /
  self._own_shape - b * self.intercepts.sum() + explained => self._own_shape - b * self.intercepts.sum()
  source[blocks["scale"]] = b => source[blocks["scale"]] = 0.0
  congruences(maps) / (structure.power * self.own_freedom) => congruences(maps) / self.own_freedom
  0.5 * g * (log_det / structure.power - trace) => 0.5 * g * (log_det - trace)
  product[of_b0] += self.source @ coefficients => product[of_b0] += 0.0
  change = _MOST_OF_A_CHANGE * gap => change = 0.0 * gap
  math.copysign(1.0, new - b) * squares => 0.0 * squares
  return (g / own) * structure.congruence(maps, gradients) => return structure.congruence(maps, gradients)
gaussian/fitting/rounding.py : estimators/test_learned_prior.py gaussian/fitting estimators/test_number_of_clusters.py
  max(variances[column], _LEAST_DEVIATION**2 * rows.variances[column]) => variances[column]
  = _SHARE_OF_ROUNDING * step**2 => = 100.0 * _SHARE_OF_ROUNDING * step**2
  np.append(own.counts, of_atoms).max() => own.counts.max()
gaussian/sampling/hyperparameters.py : sampling gaussian/sampling
  scatter = self._freedom * self._in_coordinates(roots) => scatter = self._in_coordinates(roots)
  return constant - self._shape * np.log => return constant - 0.5 * self._shape * np.log
  by_group.sum(axis=1) + of_rows - self => by_group.sum(axis=1) + 0.5 * of_rows - self
  log_nu_from_prior(generator, (len(draws), others.sum())) => 0.5 * log_nu_from_prior(generator, (len(draws), others.sum()))
family_mixture/learned_prior.py : latent_class
  values * self.along(expected) => self.along(expected)
  slope - self.shape + np.square(values) => slope - self.shape - np.square(values)
gaussian/posterior/variational_posterior.py : gaussian/posterior gaussian/information/test_observed_information.py mixture/test_ascent.py gaussian/fitting/test_degenerate_fits.py
  first = moments.first + self.prior => first = moments.first - self.prior
  in_q = -log_det_covariances if prior.independent else expected => in_q = expected
  self.known_noise = structure.power * structure => self.known_noise = structure
  prior.degrees_of_freedom + structure.power * self.group_counts => prior.degrees_of_freedom + self.group_counts
  variance = 0.25 * self.structure.wisharts => variance = 0.5 * self.structure.wisharts
  varies = np.all(structure => varies = np.any(structure
gaussian/posterior/mixture_prior.py : gaussian/posterior gaussian/fitting/test_row_span.py gaussian/fitting/test_noise_cost.py gaussian/answers/test_influence_functions.py
  return self.prior_variance + self.reg_covar * counts => return self.prior_variance
  wisharts.freedom_of_means if self.independent else 0 => wisharts.freedom_of_means
mixture/weight_priors.py : mixture/test_weight_priors.py gaussian/answers/test_targets.py
  np.tri(self.n_components, self.n_components - 1, k=-1) => np.tri(self.n_components, self.n_components - 1)
  mean[:, None] * (log_change - mean @ log_change) => mean[:, None] * log_change
  return mean / mean.sum() => return mean
gaussian/covariance_structures/matrices.py : gaussian/covariance_structures estimators/test_value_range.py gaussian/answers/test_leave_one_out.py
  np.abs(shifts).max() > _FAR => np.abs(shifts).max() < _FAR
  precisions = self.gram(self.transposed(whiteners)) => precisions = self.gram(whiteners)
gaussian/covariance_structures/scales.py : gaussian/covariance_structures
  np.broadcast_to(2.0 * whiteners * curvature => np.broadcast_to(whiteners * curvature
gaussian/covariance_structures/features.py : gaussian/covariance_structures gaussian/information estimators/test_missing_values.py
  monomials[quadratic:] += spread => monomials[quadratic:] -= spread
distributions/wishart.py : gaussian/covariance_structures gaussian/fitting/test_component_statistics.py gaussian/posterior
  self.freedom_of_means = self.power * self.n_means => self.freedom_of_means = self.n_means
  log_det_scaled = log_det_scatter + self._size => log_det_scaled = log_det_scatter - self._size
gaussian/covariance_structures/full_pair.py : gaussian/covariance_structures/test_full_pair.py gaussian/information
  own -= monomials[some, :1] * scaled_origin => own += monomials[some, :1] * scaled_origin
gaussian/covariance_structures/random_factors.py : gaussian/sampling/test_densities.py gaussian/sampling/test_copula.py sampling/test_exact_posterior.py
  (0.5 * self._earlier + 1.0) * np.log(pivots) => (self._earlier + 1.0) * np.log(pivots)
distributions/copula_margins.py : gaussian/sampling/test_densities.py gaussian/sampling/test_copula.py sampling/test_exact_posterior.py latent_class/test_draws.py
  return slopes - normals / np.square(self.scale) => return slopes + normals / np.square(self.scale)
  log_slopes - normals / np.square(self.scale) => log_slopes - normals / self.scale
gaussian/information/missing_information.py : gaussian/information estimators/test_sample_weight.py
  blocks[l, k] = blocks[k, l].T => blocks[l, k] = blocks[k, l]
  own[is_shared] -= other[is_shared] => own[is_shared] += other[is_shared]
  weights * (information[k] + information[l]) => weights * information[k]
  expectation.responsibilities * np.sqrt(block.counts) => expectation.responsibilities * block.counts
gaussian/information/columns.py : gaussian/information estimators/test_sample_weight.py
  np.sqrt(block.counts[ambiguous])[row] => np.sqrt(block.counts)[row]
  kernel[np.ix_(used[some], others)] += products => kernel[np.ix_(used[some], others)] = products
gaussian/information/learned_prior_information.py : gaussian/information
  of_labels += self._covariance_of_columns.T @ images => of_labels += 0.0
  of_labels += self._border_of_columns.T @ of_b0 => of_labels += 0.0
  variances = np.square(self._deviations[places, 0]) => variances = self._deviations[places, 0]
  known[:, np.isin(index, np.arange(len(self))[self._of_b0])] = 0.0 => pass
  self._solved_for_covariance(border)) => np.zeros((structure.identity.size, border.shape[1])))
gaussian/information/missing_value_information.py : gaussian/information estimators/test_missing_values.py
  second *= 4.0 * scaled[k] => second *= 2.0 * scaled[k]
  directions.projections[0].T / self._structure.power => directions.projections[0].T
gaussian/information/observed_information.py : gaussian/information estimators/test_missing_values.py
  ways = sorted(costs, key=costs.__getitem__) => ways = sorted(costs, key=costs.__getitem__, reverse=True)
  columns.shares.min() > round_off(len(complete)) => columns.shares.min() > -1.0
mixture/acceleration.py : mixture/test_acceleration.py mixture/test_ascent.py
  2.0 * min(recent) > recent[0] => 2.0 * min(recent) > recent[-1]
mixture/ascent.py : mixture/test_ascent.py mixture/test_restarts.py gaussian/fitting/test_degenerate_fits.py estimators/test_callbacks.py
  away = self._escaped(fit) if fit.is_indefinite else None => away = None
  after_step(0.5**halving * step) => after_step(step)
mixture/fit.py : mixture/test_ascent.py mixture/test_restarts.py gaussian/fitting/test_degenerate_fits.py
  self.information.definiteness("probe") is Definiteness.INDEFINITE => False
  return 0.5 * distance**2 < => return distance**2 <
mixture/multi_start.py : mixture/test_restarts.py estimators/test_callbacks.py
  self.optima = {number: replace(fit, stopped=True) for number, fit in tried.items()} => pass
  n_finished = 1 + ceil( => n_finished = ceil(
gaussian/fitting/component_statistics.py : gaussian/fitting/test_component_statistics.py mixture/test_moves.py
  np.log(first / (first + second - b0) * => np.log(first / (first + second) *
  centred_means[second] - b0 * prior.mean => centred_means[second]
mixture/moves.py : mixture/test_moves.py gaussian/fitting/test_component_statistics.py
  xlogy(merged, merged) - own[group].sum(axis=0) => own[group].sum(axis=0) - xlogy(merged, merged)
mixture/search.py : gaussian/fitting/test_search.py latent_class/test_splits.py
  gains = self._gains - components.gains_of_weights(merged, present) => gains = self._gains.copy()
  lower_bound - weight_contribution) => lower_bound)
family_mixture/components.py : latent_class/test_splits.py
  sums[[split.component, second]] = share * parts.sums => sums[[second, second]] = share * parts.sums
  axes = np.linalg.eigh((comparable.T * weights) @ comparable)[1][:, ::-1] => axes = np.linalg.eigh((comparable.T * weights) @ comparable)[1]
gaussian/fitting/row_span.py : gaussian/fitting/test_row_span.py
  excess[np.diag_indices_from(excess)] -= variance => excess[np.diag_indices_from(excess)] -= 0.0
  Complement(rows.n_features - size, => Complement(rows.n_features - n_samples,
answers/deletion.py : gaussian/answers/test_leave_one_out.py
  posterior.with_known_noise(coordinates.moments(row.represented, weights)) => coordinates.moments(row.represented, weights)
  _TOLERANCE * (1.0 / np.fmax(moves, 1.0) => _TOLERANCE * (1.0
linear_response/solvers.py : linear_response gaussian/information estimators/test_evidence.py
  squared[active] / previous[active] * along => previous[active] / squared[active] * along
  return super().log_determinant + of_rest => return super().log_determinant
  right = solution[block] + solve_triangular( => right = solution[block] - solve_triangular(
mean_field/linear_response/covariance.py : mean_field/test_covariance.py
  deviations[:, None] * matrix * deviations => deviations[:, None] * matrix
answers/targets.py : gaussian/answers/test_targets.py gaussian/answers/test_prior_sensitivity.py
  return scaled.T / scale => return scaled.T
  return direct - counts @ self.count_jacobian.T => return direct
gaussian/answers/targets.py : gaussian/answers/test_targets.py gaussian/answers/test_prior_sensitivity.py
  if posterior.prior.independent: => if False:
gaussian/answers/margins.py : gaussian/answers/test_posterior_summary.py gaussian/answers/test_targets.py
  + 2.0 * covariances[:, first, second] => + covariances[:, first, second]
  covariances[:, places][:, :, place] => covariances[:, place[0]][:, :, place]
  sums + differences - 16.0 * entries => sums + differences - 8.0 * entries
  plus[1] - plus[0], minus[2] - minus[1] => plus[1] - plus[0], minus[1] - minus[0]
  self._moment(self.shape - 2.0 => self._moment(self.shape - 1.0
gaussian/answers/scores_without_rows.py : gaussian/answers/test_leave_one_out.py estimators/test_sample_weight.py
  freedom_before / structure.power + added => freedom_before / structure.power - added
answers/leave_one_out.py : gaussian/answers/test_leave_one_out.py estimators/test_sample_weight.py
  self._weights = block.counts * self.responding => self._weights = self.responding
gaussian/answers/influence.py : gaussian/answers/test_influence_functions.py estimators/test_missing_values.py estimators/test_sample_weight.py gaussian/answers/test_robust_covariance.py
  slopes = centred_on_average(slopes, r) => slopes = -centred_on_average(slopes, r)
  slopes -= directions.onto(slopes) => pass
answers/influence.py : gaussian/answers/test_robust_covariance.py
  np.outer(sums, sums) / rows.total_weight => np.outer(sums, sums) / rows.n_samples
estimators/base.py : estimators/test_fitted.py
  if given.get(name) is not value => if given.get(name, value) is not value
answers/uncertainty.py : estimators/test_fitted.py
  array.flags.writeable = False => array.flags.writeable = True
gaussian/answers/prior_sensitivity.py : gaussian/answers/test_prior_sensitivity.py
  per_component(0.25 * excess / structure.power) => per_component(0.25 * excess)
  posterior.n_features / posterior.mean_precision**2 => posterior.n_features / posterior.mean_precision
sampling/copula.py : gaussian/sampling sampling
  draws, slopes) @ self.root + normals => draws, slopes) @ self.root
gaussian/sampling/copula.py : gaussian/sampling sampling
  logits * (1.0 - share), -logits * share => logits * share, -logits * (1.0 - share)
gaussian/sampling/parameters.py : gaussian/sampling/test_densities.py sampling/test_exact_posterior.py
  exponents = structure.power * structure => exponents = structure
  axis=1)[:, ::-1] - in_order => axis=1)[:, ::-1]
sampling/labels.py : sampling/test_exact_posterior.py estimators/test_evidence.py
  _TIE_BREAK * np.arange(n_components) - 2.0 * shares => _TIE_BREAK * np.arange(n_components) - shares
  np.sum(~occupied(counts)) + 1) => np.sum(~occupied(counts)))
sampling/chain_draws.py : sampling/test_exact_posterior.py
  np.stack(list(of_shares)) / _DENSITY_AT_LIMIT => np.stack(list(of_shares))
  of_limits * np.maximum(lengths, 1.0) => of_limits
sampling/chains.py : sampling/test_exact_posterior.py
  momenta * cosine - chains.normals => momenta * cosine + chains.normals
gaussian/sampling/parameters.py : sampling/test_exact_posterior.py
  / np.sqrt(mean_precision) => / mean_precision
sampling/importance.py : sampling/test_pareto_smoothing.py
  _PRIOR_WEIGHTS * _PRIOR_SHAPE => _PRIOR_SHAPE
rows/array_rows.py : rows estimators/test_missing_values.py
  positions, side="right") => positions, side="left")
  return self.first + index, => return index,
  self.total(sum_of_squares) / self.seen_weight => self.total(sum_of_squares) / self.total_weight
rows/blocks.py : rows estimators/test_sample_weight.py
  block.weighted(block.seen).sum(axis=1) => block.seen.sum(axis=1)
  self.starts, place, side="right") => self.starts, place, side="left")
estimators/fitted.py : estimators/test_fitted.py
  arrays["mean_prior_"] - origin => arrays["mean_prior_"]
answers/uncertainty.py : estimators/test_fitted.py
  array.flags.writeable = False => array.flags.writeable = True
estimators/gaussian_arguments.py : estimators/test_estimator.py gaussian/fitting/test_degenerate_fits.py
  mean = given - rows.origin => mean = given
  np.sqrt(rows.variances + np.square(rows.origin)) => np.sqrt(rows.variances)
answers/groups.py : answers/test_groups.py
  root *= np.sqrt(factors[groups.strata, None]) => root *= factors[groups.strata, None]
  np.concatenate(kept) - means[groups.strata] => np.concatenate(kept)
  gram - (factors[:, None] * means).T @ total => gram
  (total - largest < _OF_OTHER_GROUPS) => (total < _OF_OTHER_GROUPS)
  groups.chosen(counts.sum(axis=1) > 0) => groups.chosen(counts.sum(axis=1) >= 0)
answers/leave_group_out.py : answers/test_leave_a_group_out.py
  np.eye(len(columns)) + root.T @ images => np.eye(len(columns)) - root.T @ images
  complete.solve(of_others[:, None])[:, 0] => complete.solve(statistics[:, None])[:, 0]
gaussian/sampling/copula.py : answers/test_groups.py
  structure.transformed(structure.transposed(draws.factors), draws.scaled_means) => draws.scaled_means
answers/error_bars.py : answers/test_groups.py
  self.uncertainty, name, np.sqrt(np.maximum(np.diag(self.covariance([name])), 0.0)), np.inf => self.uncertainty, name, np.sqrt(np.maximum(np.diag(self.covariance([name])), 0.0)), 3
answers/error_bars.py : estimators/test_posterior.py
  return seconds <= _MOST_SECONDS_OF_BOOTSTRAP => return False
  if distances.max() > furthest: => if False:
estimators/base.py : estimators/test_posterior.py
  answer = answer_of_posterior(self, method, rows, None) => answer = answer_of_posterior(self, method, rows, random_state)
estimators/posterior.py : estimators/test_posterior.py
  self._seed if random_state is None else random_state => random_state
rows/grouping.py : answers/test_groups.py
  share = np.sqrt(1.0 - len(own) / size) => share = 1.0 - len(own) / size
  * (len(own) / (len(own) - 1.0)) => * 1.0
  return len(self) - self.n_strata => return len(self) - 1
  is_other = of_groups[codes] != by_row => is_other = of_groups[codes] < by_row
sampling/optimum_evidence.py : sampling/test_number_evidence.py estimators/test_number_of_clusters.py
  is_counted &= divergences <= => is_counted &= -1e9 <=
sampling/number_evidence.py : sampling/test_number_evidence.py estimators/test_number_of_clusters.py
  log_orders + gammaln(total) - => log_orders + gammaln(concentration) -
  return -gammaln(n_components + 1.0) => return 0.0 * n_components
  probability = softmax(log_evidence + log_prior) => probability = softmax(log_evidence)
  softmax(drawn + log_prior, axis=1) => softmax(drawn, axis=1)
  slope[places] += own.n_effective * (own.shares - shares) => slope[places] += own.n_effective * (own.shares - 0.9 * shares)
  weights = np.append(0.0, self._occupied_shares(k, log_parts))[n_occupied] / visited => weights = 1.0 / visited
  else -np.inf) - self._log_ways(k, k) => else -np.inf) - self._log_ways(k + 1, k)
gaussian/sampling/parameters.py : estimators/test_number_of_clusters.py gaussian/sampling/test_draws_with_noise.py
  replace(prior, mean_precision=factor * prior.mean_precision), => replace(prior, mean_precision=prior.mean_precision / factor),
answers/number_of_clusters.py : estimators/test_number_of_clusters.py
  falls = slopes - slopes[:, [best]] => falls = slopes[:, [best]] - slopes
  gaps = log_joint[best] - log_joint => gaps = np.nanmax(self.log_evidence) - self.log_evidence
  log_prior = {"second_order": log_number_prior(self.n_components) * self._has_prior} => log_prior = {}
estimators/number_search.py : estimators/test_number_of_clusters.py
  reached -= posterior.prior.weights.log_evidence(posterior.label_counts) => reached -= 0.0
estimators/gaussian_mixture.py : estimators/test_number_of_clusters.py
  for name in ("covariance_prior", "mean_precision_prior") if => for name in ("covariance_prior",) if
estimators/latent_class_mixture.py : latent_class/test_conclusions.py
  for name, own in family.hyperparameters.items() if name not in learned} => for name, own in family.hyperparameters.items()}
families/numeric.py : latent_class/test_conclusions.py
  score = 0.5 / kappa - 0.5 * np.square(scaled) => score = 0.5 / kappa - np.square(scaled)
answers/normal_scores.py : estimators/test_model_check.py
  y = skewness * np.sqrt((n + 1) * (n + 3) / (6 * (n - 2))) => y = skewness * np.sqrt(n / 6)
  2.0 * ndtr(-np.abs(scaled)) => ndtr(-np.abs(scaled))
answers/column_dependence.py : estimators/test_model_check.py
  np.square(gaps) * (both - 3.0) => np.square(gaps) * both
  scale = np.outer(n_seen, n_seen) / np.maximum(both, 1.0) ** 2 => scale = 1.0
answers/model_tests.py : estimators/test_model_check.py
  chosen[order[first]] = True => chosen[:] = True
  self.p_adjusted(test) < LEVEL => test.p_value < LEVEL
answers/repeated_values.py : estimators/test_model_check.py
  is_spike = largest >= least * np.maximum(totals, LEAST_ROWS) => is_spike = largest >= least * totals
  np.where(look_continuous & (n_others >= _OTHER_ROWS), => np.where(look_continuous,
cluster_regression/designs.py : cluster_regression
  change[0, place] = -column.centre / column.scale => change[0, place] = 0.0
  own = value if column.level is None else float(value == column.level) => own = value
cluster_regression/outcome_step.py : cluster_regression
  factors = 1.0 / np.sqrt(np.maximum(1.0 - leverages, _LEAST_REST)) => factors = 0.0
  inverse, of_score = self._solution[0], self.of_one_row => inverse, of_score = self._solution[0], 0.0 * self.of_one_row
  responses[label, :, label] += own * of_label => pass
  return own + self._change @ self.clusters.response(targets) => return own
  responses[: len(own)] += own => pass
  whole = factor * self._null_covariance(contrasts, free) => pass
cluster_regression/structural_model.py : cluster_regression
  score = r[1:K] - r[:K].sum(axis=0) * self.shares[1:] => score = r[1:K] - self.shares[1:]
  observed[own, own] -= r[1:K] => observed[own, own] -= 0.0
  slopes = moments * _SD_OF_DIFFERENCES**-2.0 => slopes = 0.0 * moments
cluster_regression/estimation.py : cluster_regression
  out += self.step.score_of_rows(block.numbers) @ self.change.T => pass
  return self.posterior.log_weight_covariance => return 0.0 * self.posterior.log_weight_covariance
  return self.own_covariance + self.inverse @ (0.5 * (of_score + of_score.T)) @ self.inverse => return self.own_covariance
  (groups.factors()[groups.strata, None] * centred).T @ centred => centred.T @ centred
cluster_regression/covariate_step.py : cluster_regression
  max(ratio, 0.0) * q / np => max(ratio, 0.0) * 2.0 * q / np
cluster_regression/quantities.py : cluster_regression
  changes[np.arange(1, K), np.arange(K - 1)] += shares[1:] => changes[np.arange(1, K), np.arange(K - 1)] += 0.0
  np.clip(values, 0.0, 1.0) if self.are_shares else values, slopes => values, slopes
cluster_regression/intervals.py : cluster_regression
  np.maximum(np.diag(covariance), 0.0)) / (value * (1.0 - value)) => np.maximum(np.diag(covariance), 0.0))
  a * (np.square(values) - square * rest) => a * np.square(values)
  values - joint(down[one], up[other]), values + joint(up[one], down[other]) => values - joint(up[one], down[other]), values + joint(down[one], up[other])
cluster_regression/direct_effects.py : cluster_regression
  through_fit = influence_of_all(clusters.rows.rows, functions) / share => through_fit = 0.0 * self._phi
  if groups is None and self.step.outcome.levels: => if False:
cluster_regression/results.py : cluster_regression
  if p * len(tests) < LEVEL => if p < LEVEL
cluster_regression/conclusion.py : cluster_regression
  self._step.require_order(optimum.rows) => pass
estimators/other_densities.py : estimators/test_model_check.py
  smallest, largest = ends => smallest, largest = joined.min(), joined.max()
  / 10.0**digits, max(digits, 0) => / 10.0**digits, 0
estimators/remedies.py : estimators/test_model_check.py
  second_order = mixture.log_evidence_ => second_order = mixture.lower_bound_
  self.base, self._evidence = fit, _Evidence.of(fit) => pass
gaussian/answers/row_scores.py : estimators/test_model_check.py
  n_seen = (~np.isnan(self._X)).sum(axis=1) => n_seen = np.full(len(self._X), self._X.shape[1])
estimators/alternatives.py : estimators/test_model_check.py
  moves = None if self.unfitted.moves is None else "auto" => moves = self.unfitted.moves
  log_derivative += np.nansum(log_derivatives) => log_derivative -= np.nansum(log_derivatives)
estimators/model_checking.py : estimators/test_model_check.py
  np.inf if fractions == 0 else weight**2 / squares => np.inf
answers/partition_search.py : estimators/test_partition_search.py
  costs[self.sizes == 0] = np.inf => pass
answers/partitions.py : estimators/test_partition_posterior.py
  others = sizes[clusters] - 1 => others = sizes[clusters]
  (shared[own] - 1.0) / np.maximum(others, 1) => shared[own] / np.maximum(others, 1)
  drawn.sizes[:, :, None] - overlaps => drawn.sizes[:, :, None]
  np.flatnonzero(given.which_count())[index] => index
sampling/random_assignments.py : sampling/test_row_labels.py
  UniformStream(self._seed + number, batch.start) => UniformStream(self._seed, batch.start)
mixture/weight_priors.py : mixture/test_weight_priors.py estimators/test_noise.py gaussian/answers/test_prior_sensitivity.py
  slope = np.hstack([[[1.0], [self.n_components]], of_components._slope]) => slope = np.hstack([[[1.0], [1.0]], of_components._slope])
  components = rest / (stick + rest) * self.of_components.mean(counts[:-1]) => components = self.of_components.mean(counts[:-1])
gaussian/posterior/noise_component.py : estimators/test_noise.py estimators/test_missing_values.py
  seen_shares * (self.log_density + half_log_determinant) => seen_shares * self.log_density
gaussian/posterior/tails.py : gaussian/fitting/test_moves_of_heavy_tails.py gaussian/information/test_observed_information.py gaussian/answers/test_influence_functions.py
  return _RATE * self.fitted - _SHAPE => return _RATE * self.fitted
  return half * (1.0 - scales.mean) / np.sqrt(shape), rest => return half / np.sqrt(shape), rest
gaussian/fitting/noise_density.py : gaussian/fitting/test_noise_density.py estimators/test_noise.py
  return -float(min(row_volume + price, core_volume) + price) => return -float(max(row_volume + price, core_volume) + price)
  return -float(min(row_volume + price, core_volume) + price) => return -float(min(row_volume, core_volume))
gaussian/fitting/core.py : gaussian/fitting/test_noise_density.py gaussian/fitting/test_far_out.py
  chi2.cdf(chi2.ppf(share, n_dimensions), n_dimensions + 2) / share => share
  or are_few else => else
gaussian/fitting/far_out.py : gaussian/fitting/test_far_out.py
  nearest[~are_kept] = kept[found[:, 0]] => nearest[~are_kept] = found[:, 0]
  responsibilities[self.are_aside, -1] = 1.0 => pass
  rules = far_out, sample.are_in_sparser_half, sample.with_smallest_cluster(n_components) => rules = far_out, sample.are_in_sparser_half
estimators/gaussian_arguments.py : estimators/test_heavy_tails.py
  max(0.5 * degrees_of_freedom - 1.0, 0.0) => max(0.5 * degrees_of_freedom - 1.0, 0.0) * 0.0
  parts.has_noise_component or core.is_far_exceeded => parts.has_noise_component or not core.is_far_exceeded
estimators/attributes.py : estimators/test_heavy_tails.py
  0.5 * (fitted.posterior.log_volume - information.log_determinant) => 0.5 * (-information.log_determinant)
answers/influence.py : latent_class/test_influence_of_rows.py
  total += r * self.values_of_label(k, => total += self.values_of_label(k,
family_mixture/coordinates.py : latent_class/test_fit_identities.py
  return functools.reduce(added, map(function, self.represented)) => return function(next(iter(self.represented)))
family_mixture/information.py : latent_class/test_error_bars.py
  weights = counted[k] * r[l] => weights = r[k] * r[l]
  missing[:, k, :, k] += product => missing[:, k, :, k] += 2.0 * product
family_mixture/targets.py : latent_class/test_influence_of_rows.py
  direct.reshape(len(direct), -1) - self.responses(changes.statistics[some]) => direct.reshape(len(direct), -1)
family_mixture/draws.py : latent_class/test_draws.py
  *logs, by_logit, -by_logit) => *logs, by_logit, by_logit)
families/base.py : latent_class/test_column_families.py
  log_density += of_kind => pass
families/rate.py : latent_class/test_durations.py latent_class/test_column_families.py
  np.maximum(of_log, 1.0 / total_weight) / of_rate => np.maximum(of_log, 1.0 / total_weight)
mixed_tables/table.py : latent_class/test_table.py
  is_guessed = self.given_kind is None and self.holds_numbers => is_guessed = self.holds_numbers
  code_of.get(value, np.nan) for value in values] + [np.nan] => code_of.get(value, np.nan) for value in values] + [0.0]
families/numeric.py : latent_class/test_column_families.py
  score = 0.5 / kappa - 0.5 * np.square(scaled) => score = 0.5 / kappa - np.square(scaled)
  about = [0.25 * zeta(2.0, shape), zero, -0.25 / rate] => about = [0.25 * zeta(2.0, shape), zero, 0.25 / rate]
  + scalars[..., 1] * by_scaled) => )
family_mixture/starts.py : latent_class/test_fit_identities.py
  np.add.reduceat(weights, starts) => np.diff(np.append(starts, len(order))).astype(float)
"""  # noqa: E501
WIDE = "gaussian estimators answers linear_response rows"
AT_ONCE = 2  # Processes; the tests of one fault run in one.
TREE = Path(__file__).resolve().parent.parent


def table():
    """The faults: a list of (file, piece of code, faulty piece, tests)."""
    faults, of_file = [], ("", "")
    for line in FAULTS.strip().splitlines():
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
        options = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
        command = [sys.executable, "-m", "pytest", *options, *tests.split()]
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
