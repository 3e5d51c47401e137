"""Flip a sign, drop a term or swap an index in each update, and see that the suite goes red.

`make test-mutations` applies every mutation of the table below to a copy of the package, runs the
tests of the engine against that copy, and writes docs/theory/mutations.md. A mutation that no test
notices makes the run fail.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "theory" / "mutations.md"
SUITE = ("tests/inference", "tests/posterior", "tests/distributions", "tests/prediction")
HALF_CAUCHY = (
    "tests/inference/test_against_oracle.py",
    "tests/inference/test_exact_cases.py",
    "tests/distributions/test_half_cauchy.py",
    "tests/model/test_simulate.py",
)
REPRESENTED = ("tests/representation/test_pieces.py", "tests/representation/test_representation.py")
WARPED = ("tests/distributions/test_yeo_johnson.py", "tests/prediction/test_warped_mixture.py")
STACKED = (
    "tests/ensemble/test_stacking.py",
    "tests/ensemble/test_views.py",
    "tests/ensemble/test_recipes.py",
    "tests/ensemble/test_training.py",
)
LEVELLED = (
    "tests/prediction/test_levels.py",
    "tests/ensemble/test_noise_levels.py",
    "tests/ensemble/test_groups.py",
)
OUTCOMES = (
    "tests/inference/test_outcomes_against_oracle.py",
    "tests/model/test_outcomes.py",
    "tests/inference/test_outcomes.py",
)


@dataclass(frozen=True)
class Mutation:
    file: str
    old: str
    new: str
    meaning: str
    suite: tuple[str, ...] = SUITE


MUTATIONS = (
    Mutation(
        "inference/local_step.py",
        "message = xp.concat([weight * output.mean[..., :, 1:], -constant], axis=-2)",
        "message = xp.concat([weight * output.mean[..., :, 1:], constant], axis=-2)",
        "h of the output: sign of E[W b]",
    ),
    Mutation(
        "inference/local_step.py",
        "precision = precision - explained",
        "precision = precision + explained",
        "J of a hidden layer: sign of G'SG",
    ),
    Mutation(
        "inference/local_step.py",
        "linear = (half_gates + pull * offset) @ mean - curvature @ second[..., 0, 1:]",
        "linear = (half_gates - pull * offset) @ mean - curvature @ second[..., 0, 1:]",
        "h of a hidden layer: sign of G't",
    ),
    Mutation(
        "inference/local_step.py",
        "linear = (half_gates + pull * offset) @ mean - curvature @ second[..., 0, 1:]",
        "linear = (half_gates + pull * offset) @ mean + curvature @ second[..., 0, 1:]",
        "h of a hidden layer: sign of c E[W b]",
    ),
    Mutation(
        "inference/local_step.py",
        "(memory.gate_probability[index] - 0.5) / gate_temperature",
        "(memory.gate_probability[index] + 0.5) / gate_temperature",
        "h of a hidden layer: rho - ½",
    ),
    Mutation(
        "inference/local_step.py",
        "polya_gamma.mean(memory.tilt[index - 1]) / gate_temperature**2",
        "polya_gamma.mean(memory.tilt[index - 1]) / gate_temperature",
        "c of a hidden layer: 1/T for 1/T²",
    ),
    Mutation(
        "inference/local_step.py",
        "memory.gate_probability[index]\n",
        "memory.gate_probability[max(index - 1, 0)][:, :1]\n",
        "gates of the layer below (erratum 3)",
    ),
    Mutation(
        "inference/local_step.py",
        "slope * preactivation - curvature * tilt[index] ** 2",
        "slope * preactivation + curvature * tilt[index] ** 2",
        "gates: sign of ½ E[z²]",
    ),
    Mutation(
        "inference/local_step.py",
        "moments.means[index] + 1.0 / model.gate_temperature",
        "moments.means[index] - 1.0 / model.gate_temperature",
        "gates: sign of E[z] / T",
    ),
    Mutation(
        "inference/local_step.py",
        "xp.sqrt(second @ (squares / model.gate_temperature**2))",
        "xp.sqrt(second @ (squares * model.gate_temperature**2))",
        "tilts: T for 1/T",
    ),
    Mutation(
        "posterior/moments.py",
        "covariance = factor.covariance + cross[-1] @ transpose(factor.gain)",
        "covariance = factor.covariance - cross[-1] @ transpose(factor.gain)",
        "chain: sign of M C M'",
    ),
    Mutation(
        "inference/local_step.py",
        "log_odds = log_odds + noise_precision * covariance",
        "log_odds = log_odds + 0.0 * covariance",
        "E[a z]: covariance of a_l and a_{l-1} dropped",
    ),
    Mutation(
        "inference/statistics.py",
        "return cross + xp.concat([xp.zeros_like(spread[..., :1]), spread], axis=-1)",
        "return cross + 0.0 * xp.concat([xp.zeros_like(spread[..., :1]), spread], axis=-1)",
        "Σ rho E[a a~]: covariance dropped (erratum 1)",
    ),
    Mutation(
        "inference/statistics.py",
        "half_gate_mean=gate_moment[..., :size] - 0.5 *",
        "half_gate_mean=gate_moment[..., :size] + 0.5 *",
        "Σ (rho - ½) mu~: sign of ½",
    ),
    Mutation(
        "inference/statistics.py",
        "input_moment = input_moment + bordered(",
        "input_moment = input_moment - bordered(",
        "Σ P~ of the output: sign of M C M'",
    ),
    Mutation(
        "inference/global_step.py",
        "sums.polya_gamma_moment / model.gate_temperature**2\n                + noise",
        "sums.polya_gamma_moment / model.gate_temperature**2\n                - noise",
        "hidden B^{-1}: sign of E[1/eta²] Σ rho P~",
    ),
    Mutation(
        "inference/global_step.py",
        "+ sums.half_gate_mean / model.gate_temperature",
        "- sums.half_gate_mean / model.gate_temperature",
        "hidden m: sign of Σ (rho - ½) mu~ / T",
    ),
    Mutation(
        "inference/global_step.py",
        "concentration = prior.concentration + 0.5 * statistics.count",
        "concentration = prior.concentration - 0.5 * statistics.count",
        "eta²: sign of N/2",
    ),
    Mutation(
        "inference/global_step.py",
        "squares = own - 2.0 * xp.sum(layer.weights.mean * cross, axis=-1)",
        "squares = own + 2.0 * xp.sum(layer.weights.mean * cross, axis=-1)",
        "eta²: sign of 2 m'Σ rho E[a a~]",
    ),
    Mutation(
        "inference/global_step.py",
        "moment = moment + statistics.count[..., None, None] * shared",
        "moment = moment - statistics.count[..., None, None] * shared",
        "output: sign of N S_L",
    ),
    Mutation(
        "inference/global_step.py",
        "return statistics.count[..., None] * diagonal(factors.shared_covariance)",
        "return -statistics.count[..., None] * diagonal(factors.shared_covariance)",
        "eta² of the last hidden layer: sign of N diag(S_L)",
    ),
    Mutation(
        "inference/global_step.py",
        "precision = precision + diagonal_matrix(inverse_gamma.mean_inverse(last.noise_variance))",
        "precision = diagonal_matrix(inverse_gamma.mean_inverse(last.noise_variance)) - precision",
        "S_L: sign of the output's part",
    ),
    Mutation(
        "model/shrinkage.py",
        "order=prior.order - 0.5 * count",
        "order=prior.order + 0.5 * count",
        "tau, psi: sign of the order's change",
    ),
    Mutation(
        "model/shrinkage.py",
        "scale=prior.scale + half_squares",
        "scale=prior.scale + 2.0 * half_squares",
        "tau, psi: ½ of the squares forgotten",
    ),
    Mutation(
        "inference/global_step.py",
        "half_squares = 0.5 * beside_weights(layer) * weight_squares(layer)",
        "half_squares = 0.5 / beside_weights(layer) * weight_squares(layer)",
        "psi: tau for 1/tau",
    ),
    Mutation(
        "distributions/half_cauchy.py",
        "slope = a - 1.0 - u",
        "slope = a - 1.0 + u",
        "horseshoe: sign of h in the scale of q",
        HALF_CAUCHY,
    ),
    Mutation(
        "distributions/half_cauchy.py",
        "a = 0.5 + 0.5 * count",
        "a = 1.0 + 0.5 * count",
        "horseshoe: concentration of q",
        HALF_CAUCHY,
    ),
    Mutation(
        "distributions/half_cauchy.py",
        "q.scale * inverse - xp.log1p(scale * inverse)",
        "q.scale * inverse - 0.5 * xp.log1p(scale * inverse)",
        "horseshoe: bound of nu",
        HALF_CAUCHY,
    ),
    Mutation(
        "model/shrinkage.py",
        "scale = prior.scale + 0.5 * squares",
        "scale = prior.scale + squares",
        "horseshoe, slab: ½ of the square forgotten",
        HALF_CAUCHY,
    ),
    Mutation(
        "model/shrinkage.py",
        "(prior.concentration + 0.5) * ones",
        "prior.concentration * ones",
        "horseshoe, slab: its weight does not count",
        HALF_CAUCHY,
    ),
    Mutation(
        "inference/global_step.py",
        "shrinkage = shrinkage + inverse_gamma.mean_inverse(layer.slab_variance)",
        "shrinkage = shrinkage + 0.0 * inverse_gamma.mean_inverse(layer.slab_variance)",
        "horseshoe, slab: no part of a weight's precision",
        HALF_CAUCHY,
    ),
    Mutation(
        "inference/elbo.py",
        "terms = terms - 0.5 * inverse_gamma.mean_inverse(slab) * weight_squares(layer)",
        "terms = terms + 0.5 * inverse_gamma.mean_inverse(slab) * weight_squares(layer)",
        "horseshoe, slab: sign of the squares in the bound",
        HALF_CAUCHY,
    ),
    Mutation(
        "inference/elbo.py",
        "concentration=like(slab.scale, prior.concentration + 0.5),",
        "concentration=like(slab.scale, prior.concentration),",
        "horseshoe, slab: constant of the bound",
        HALF_CAUCHY,
    ),
    Mutation(
        "inference/empirical_bayes.py",
        "excess = np.mean(share - 0.5, axis=0)",
        "excess = np.mean(share - 0.4, axis=0)",
        "horseshoe, EM: half of the layers",
        HALF_CAUCHY,
    ),
    Mutation(
        "model/simulate.py",
        "variance = slabs[-1] / (1.0 + slabs[-1] / variance)",
        "variance = slabs[-1] + variance",
        "horseshoe, slab: simulated variances add, not precisions",
        HALF_CAUCHY,
    ),
    Mutation(
        "inference/empirical_bayes.py",
        "return replace(prior, scale=count * -prior.order / inverse)",
        "return replace(prior, scale=(count - 1) * -prior.order / inverse)",
        "EM, inverse gamma: L for L+1",
    ),
    Mutation(
        "inference/empirical_bayes.py",
        "return replace(prior, rate=count * prior.order / total)",
        "return replace(prior, rate=2.0 * count * prior.order / total)",
        "EM, gamma: factor 2",
    ),
    Mutation(
        "inference/empirical_bayes.py",
        "rate=prior.scale * (count / total) ** 2",
        "rate=4.0 * prior.scale * (count / total) ** 2",
        "EM, inverse Gaussian: the paper's factor 2 (erratum 5)",
    ),
    Mutation(
        "inference/elbo.py",
        "return sums.polya_gamma_ratio - 0.5 * squares / model.gate_temperature**2",
        "return sums.polya_gamma_ratio + 0.5 * squares / model.gate_temperature**2",
        "bound: sign of the omega term (erratum 4)",
    ),
    Mutation(
        "inference/elbo.py",
        "return total / model.gate_temperature - constant + sums.gate_entropy",
        "return total / model.gate_temperature - constant - sums.gate_entropy",
        "bound: sign of the gates' entropy",
    ),
    Mutation(
        "distributions/bernoulli.py",
        "axis=-1) - sum_of_logs(",
        "axis=-1) + sum_of_logs(",
        "gates' entropy: sign of the logarithm",
    ),
    Mutation(
        "distributions/polya_gamma.py",
        "linear - sum_of_logs(",
        "linear + sum_of_logs(",
        "Polya-Gamma ratio: sign of the logarithm",
    ),
    Mutation(
        "inference/elbo.py",
        "n_weights * _LOG_2PI + squares",
        "width * _LOG_2PI + squares",
        "bound: a constant of the weights' prior (erratum 8)",
    ),
    Mutation(
        "distributions/generalized_inverse_gaussian.py",
        "return -p / scale",
        "return (-p - 1.0) / scale",
        "inverse gamma: E[1/x]",
    ),
    Mutation(
        "posterior/initialize.py",
        "q = gig.with_mean(prior.order - 0.5 * count, prior.rate, draw)",
        "q = gig.with_mean(prior.order - 0.5 * count, prior.rate, 2.0 * draw)",
        "start: mean of q is the draw (erratum 11)",
    ),
    Mutation(
        "posterior/selection.py",
        "if count < ascending.size and ascending[count] == ascending[count - 1]:",
        "if False:",
        "selection: equal weights are parted",
    ),
    Mutation(
        "inference/pruning.py",
        "map_[0, 1:] = center",
        "map_[0, 1:] = 0.0 * center",
        "pruning: constants are forgotten (erratum 12)",
    ),
    Mutation(
        "inference/pruning.py",
        "result_mean[changed] = (found @ linear[:, :, None])[:, :, 0]",
        "result_mean[changed] = np.where(kept, mean, 0.0)[changed]",
        "pruning: means are kept, not conditioned (erratum 13)",
    ),
    Mutation(
        "inference/pruning.py",
        "extra = squares @ (open_ if to_noise else open_ + chance)",
        "extra = squares @ open_",
        "pruning: chance below a hidden layer is forgotten",
    ),
    Mutation(
        "inference/pruning.py",
        "0.5 * np.where(lost > 0.0, residual, 0.0)",
        "np.where(lost > 0.0, residual, 0.0)",
        "pruning: noise takes in the residual, without ½",
    ),
    Mutation(
        "inference/global_step.py",
        "squares = squares + removed.count * precision",
        "squares = squares - removed.count * precision",
        "tau: sign of the weights that were pruned",
    ),
    Mutation(
        "inference/elbo.py",
        "squares - removed.count * rest",
        "squares + removed.count * rest",
        "bound: sign of the weights that were pruned",
    ),
    Mutation(
        "prediction/predictive.py",
        "diagonal_matrix(1.0 / noise_precision)",
        "diagonal_matrix(noise_precision)",
        "prediction: S_L is the noise",
    ),
    Mutation(
        "inference/coordinate_ascent.py",
        "if moved and not value >= history[-1]:",
        "if moved and value != value:",
        "momentum: a step that lowers the bound is kept",
    ),
    Mutation(
        "inference/stochastic.py",
        "return (1.0 - amount) * old + amount * new",
        "return old + amount * new",
        "stochastic: the old statistics are not shrunk",
    ),
    Mutation(
        "inference/stochastic.py",
        "scale = n_rows / found.count",
        "scale = 1.0",
        "stochastic: a batch does not stand for all rows",
    ),
    Mutation(
        "inference/stochastic.py",
        "self.size(at.state.step - at.turned)",
        "self.size(at.state.step)",
        "stochastic: steps shrink as if they had always done so",
    ),
    Mutation(
        "representation/pieces.py",
        "least = like(inputs, np.where(first, -np.inf, 0.0))",
        "least = like(inputs, np.where(first, 0.0, 0.0))",
        "pieces: the first component held below",
        REPRESENTED,
    ),
    Mutation(
        "representation/pieces.py",
        "largest = like(inputs, np.where(last, np.inf, 1.0))",
        "largest = like(inputs, np.where(last, np.inf, np.inf))",
        "pieces: inner components not held above",
        REPRESENTED,
    ),
    Mutation(
        "representation/pieces.py",
        "scale = np.sqrt(np.mean(spread**2)) * ones",
        "scale = np.where(spread > 0.0, spread, 1.0)",
        "pieces: each component on a scale of its own",
        REPRESENTED,
    ),
    Mutation(
        "distributions/yeo_johnson.py",
        "return (_power(inside, exponent) - 1.0) * xp.log1p(xp.abs(inside)) - xp.log(scale)",
        "return (_power(inside, exponent) - 1.0) * xp.log1p(xp.abs(inside)) + xp.log(scale)",
        "warp: sign of the log scale in the slope",
        WARPED,
    ),
    Mutation(
        "distributions/yeo_johnson.py",
        "return (_power(inside, exponent) - 1.0) * xp.log1p(xp.abs(inside)) - xp.log(scale)",
        "return (1.0 - _power(inside, exponent)) * xp.log1p(xp.abs(inside)) - xp.log(scale)",
        "warp: sign of the log slope",
        WARPED,
    ),
    Mutation(
        "distributions/yeo_johnson.py",
        "np.log(share @ (bent - share @ bent) ** 2) - (exponent - 1.0) * direction",
        "np.log(share @ (bent - share @ bent) ** 2) + (exponent - 1.0) * direction",
        "warp: sign of the Jacobian in the likelihood of the exponent",
        WARPED,
    ),
    Mutation(
        "distributions/yeo_johnson.py",
        "xp.maximum(2.0 - exponent, least), xp.maximum(exponent, least)",
        "xp.maximum(exponent, least), xp.maximum(exponent, least)",
        "warp: the power below zero",
        WARPED,
    ),
    Mutation(
        "distributions/yeo_johnson.py",
        "found = found + power * term**2",
        "found = found + share * term**2",
        "warp: powers of the correlation in the epistemic variance",
        WARPED,
    ),
    Mutation(
        "prediction/components.py",
        "constants = constants + log_slope(_beside_points(parts.warp), x)",
        "constants = constants - log_slope(_beside_points(parts.warp), x)",
        "warped mixture: sign of the Jacobian",
        WARPED,
    ),
    Mutation(
        "ensemble/stacking.py",
        "of_recipes = np.log(weights)[:, None] + of_targets.sum(axis=2) + state.slopes",
        "of_recipes = np.log(weights)[:, None] + of_targets.sum(axis=2)",
        "stacking: the Jacobian dropped",
        STACKED,
    ),
    Mutation(
        "ensemble/fold_networks.py",
        "logs = logs + seen.log_slopes[:stop]",
        "logs = logs + 0.0 * seen.log_slopes[:stop]",
        "recipes: the Jacobian dropped",
        STACKED,
    ),
    Mutation(
        "ensemble/stacking.py",
        "linear = inputs.T @ (shares[:, stick, target] - 0.5 * reached)",
        "linear = inputs.T @ (shares[:, stick, target] + 0.5 * reached)",
        "noise levels: sign of kappa in the gates",
        LEVELLED,
    ),
    Mutation(
        "ensemble/stacking.py",
        "reached = shares[:, stick:, target].sum(axis=1)",
        "reached = shares[:, stick + 1 :, target].sum(axis=1)",
        "noise levels: what reaches a stick",
        LEVELLED,
    ),
    Mutation(
        "ensemble/stacking.py",
        "scale = (wanted + PRIOR_ROWS) / (shares.sum(axis=(0, 1)) + PRIOR_ROWS)",
        "scale = (wanted + PRIOR_ROWS) / shares.sum(axis=(0, 1))",
        "noise levels: prior rows dropped from the counts",
        LEVELLED,
    ),
    Mutation(
        "prediction/levels.py",
        "rest = rest + log_expit(-logits)",
        "rest = rest + log_expit(logits)",
        "noise levels: what a stick leaves",
        LEVELLED,
    ),
    Mutation(
        "ensemble/ensemble.py",
        "spread = moments.epistemic_variances + (moments.means - mean[None, ...]) ** 2",
        "spread = moments.epistemic_variances",
        "noise levels: disagreement within groups dropped",
        LEVELLED,
    ),
    Mutation(
        "ensemble/draws.py",
        "draw = middle + np.sqrt(scale) * (draw - middle)",
        "draw = mean + np.sqrt(scale) * (draw - mean)",
        "noise levels: joint draws stretched around the member",
        LEVELLED,
    ),
    Mutation(
        "ensemble/arriving.py",
        "columns.append(density + log_slopes(view, batch))",
        "columns.append(density)",
        "rows that arrive: the Jacobian dropped",
        STACKED,
    ),
    Mutation(
        "inference/output_by_row.py",
        "message = linear @ output.mean - precision @ output.with_bias",
        "message = linear @ output.mean + precision @ output.with_bias",
        "outcomes: sign of p E[W b] in h",
        OUTCOMES,
    ),
    Mutation(
        "inference/output_by_row.py",
        "    precision, linear = weight * precision, weight * linear\n",
        "    precision, linear = precision, weight * linear\n",
        "outcomes: c dropped from the precision",
        OUTCOMES,
    ),
    Mutation(
        "inference/output_by_row.py",
        "shrunk = 1.0 + precision * output.curvature[..., None, :]",
        "shrunk = 1.0 + output.curvature[..., None, :]",
        "outcomes: p dropped from the common axes",
        OUTCOMES,
    ),
    Mutation(
        "inference/output_by_row.py",
        "log_determinant = output.log_determinant[..., None] - xp.sum(xp.log(shrunk), axis=-1)",
        "log_determinant = output.log_determinant[..., None] + xp.sum(xp.log(shrunk), axis=-1)",
        "outcomes: sign in log|S| of common axes",
        OUTCOMES,
    ),
    Mutation(
        "inference/output_by_row.py",
        "return precision + value * slopes[0], linear + value * slopes[1]",
        "return precision + value * slopes[0], linear",
        "outcomes: a memory of k that does not follow the dispersion",
        OUTCOMES,
    ),
    Mutation(
        "inference/output_by_row.py",
        "terms.precision - value * precision,",
        "terms.precision,",
        "outcomes: a memory of p without its intercept",
        OUTCOMES,
    ),
    Mutation(
        "posterior/moments.py",
        "return mean, square + covariance.variances @ transpose(along)",
        "return mean, square",
        "outcomes: S dropped from E[z²] of common axes",
        OUTCOMES,
    ),
    Mutation(
        "posterior/moments.py",
        "square = mean**2 + weight_spread(weights, inputs)",
        "square = mean**2 - weight_spread(weights, inputs)",
        "outcomes: sign of the weights' spread in E[z²]",
        OUTCOMES,
    ),
    Mutation(
        "inference/statistics.py",
        "            moment = moment + bordered(own)\n",
        "",
        "outcomes: C_L dropped from the output's moments",
        OUTCOMES,
    ),
    Mutation(
        "inference/statistics.py",
        " + diagonal(spreads[..., -1, :, :])",
        "",
        "outcomes: C_L dropped from the squares of the last layer",
        OUTCOMES,
    ),
    Mutation(
        "inference/statistics.py",
        "target_cross=transpose(column * terms.linear) @ mean,",
        "target_cross=transpose(column * terms.precision) @ mean,",
        "outcomes: p for k in the output's cross moment",
        OUTCOMES,
    ),
    Mutation(
        "inference/global_step.py",
        "if index == len(statistics.hidden) and not model.outcome.has_noise:",
        "if False:",
        "outcomes: noise of an output without noise",
        OUTCOMES,
    ),
    Mutation(
        "inference/global_step.py",
        "                noise_precision = namespace(noise_precision).ones_like(noise_precision)\n",
        "                pass\n",
        "outcomes: E[1/eta²] for an output without noise",
        OUTCOMES,
    ),
    Mutation(
        "inference/elbo.py",
        "return term if constant is None else term + constant",
        "return term",
        "outcomes: constants dropped from the bound of Student's t",
        OUTCOMES,
    ),
    Mutation(
        "inference/elbo.py",
        "return xp.sum(xp.sum(weights.mean * cross, axis=-1) - 0.5 * squares, axis=-1)",
        "return xp.sum(xp.sum(weights.mean * cross, axis=-1) - squares, axis=-1)",
        "outcomes: ½ of p E[z²] in the bound",
        OUTCOMES,
    ),
    Mutation(
        "inference/empirical_bayes.py",
        "slope = parabola(factors, unpack(output.slope_moment, size), output.slope_cross)",
        "slope = parabola(factors, unpack(output.slope_moment, size), 0.0 * output.slope_cross)",
        "outcomes: EM of the dispersion without its linear term",
        OUTCOMES,
    ),
    Mutation(
        "model/outcomes/binary.py",
        "linear=targets - 0.5 + xp.zeros_like(mean),",
        "linear=targets + xp.zeros_like(mean),",
        "outcomes: k of two classes",
        OUTCOMES,
    ),
    Mutation(
        "model/outcomes/counts.py",
        "linear=0.5 * (count - r) - precision * shift,",
        "linear=0.5 * (count - r) + precision * shift,",
        "outcomes: sign of the exposure in k of counts",
        OUTCOMES,
    ),
    Mutation(
        "model/outcomes/classes.py",
        "linear=0.5 * (own - expected),",
        "linear=0.5 * (own + expected),",
        "outcomes: sign of the Poisson means in k of classes",
        OUTCOMES,
    ),
    Mutation(
        "model/outcomes/student_t.py",
        "shape, rate = half + 0.5, half + 0.5 * squares",
        "shape, rate = half + 0.5, half + squares",
        "outcomes: ½ of the residual in q(lambda)",
        OUTCOMES,
    ),
)


def first_failure(output: str) -> str:
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, flags=re.MULTILINE)
    return found.group(1).split("[")[0] if found else "?"


def try_mutation(mutation: Mutation) -> str | None:
    """Name of a test that noticed, or None."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy)
        path = copy / "bowtienet" / mutation.file
        text = path.read_text()
        if text.count(mutation.old) != 1:
            sys.exit(f"{mutation.file} holds {text.count(mutation.old)} of: {mutation.old}")
        path.write_text(text.replace(mutation.old, mutation.new))
        environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutation.suite],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    return None if done.returncode == 0 else first_failure(done.stdout)


def _known_rows() -> dict[str, str]:
    """Lines of the page by their meaning: a run of some mutations leaves the others."""
    lines = PAGE.read_text().splitlines() if PAGE.is_file() else []
    return {line.split(" | ")[1]: line for line in lines if line.startswith("| `")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="mutations whose meaning contains this text")
    arguments = parser.parse_args()
    rows, missed = _known_rows(), []
    for mutation in MUTATIONS:
        if arguments.only and arguments.only not in mutation.meaning:
            continue
        noticed = try_mutation(mutation)
        print(f"{mutation.meaning}: {noticed or 'NOT NOTICED'}", flush=True)
        rows[mutation.meaning] = (
            f"| `{mutation.file}` | {mutation.meaning} | `{noticed or 'none'}` |"
        )
        if noticed is None:
            missed.append(mutation.meaning)
    lines = [rows[mutation.meaning] for mutation in MUTATIONS if mutation.meaning in rows]
    PAGE.write_text(
        "# Mutations tried\n\nWritten by `make test-mutations`: each line is one change to the "
        "package and the first test that it turned red.\n\n| file | change | noticed by |\n"
        "|---|---|---|\n" + "\n".join(lines) + "\n"
    )
    if missed:
        sys.exit(f"not noticed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
