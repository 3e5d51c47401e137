"""Flip a sign, drop a term or swap an index in each kind of update: quick tests must go red.

Each is a line of a copy of the package that a process of its own imports; the copy must be green.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
STATIONARY = "tests/inference/test_stationarity.py::test_update_is_stationary[(4,)-student_t-"
TESTS = {
    "oracle": "tests/inference/test_against_oracle.py",
    "outcomes": "tests/inference/test_outcomes_against_oracle.py",
    **{name: f"{STATIONARY}{name}]" for name in ("tilts", "gates", "weights", "hyperparameters")},
}
"""What is to notice a mutant; the gradient of the bound notices updates."""

MUTANTS = """
inference/local_step.py | oracle | activations, h of the output: sign of E[W b]
- weight * output.mean[..., :, 1:], -constant]
+ weight * output.mean[..., :, 1:], constant]
inference/local_step.py | oracle | activations, J of a hidden layer: sign of G'SG
- precision = precision - explained
+ precision = precision + explained
inference/output_by_row.py | outcomes | activations by row: sign of p E[W b]
- 1:] - precision @ mean_with_bias(output)
+ 1:] + precision @ mean_with_bias(output)
inference/local_step.py | tilts | tilts: 1/T for 1/T²
- xp.sqrt(second @ (squares / model.temperature**2))
+ xp.sqrt(second @ (squares / model.temperature))
inference/local_step.py | gates | gates: sign of ½ E[z²]
- slope * preactivation - curvature
+ slope * preactivation + curvature
posterior/moments.py | outcomes | outcome: mu~'B mu~ dropped from E[z²]
- square = mean**2 + weight_spread(weights, inputs)
+ square = mean**2
posterior/moments.py | oracle | chain: sign of M C M'
- covariance = factor.covariance + cross[-1]
+ covariance = factor.covariance - cross[-1]
posterior/moments.py | oracle | E[a z]: biases among the weights
- weights.mean[..., None, :, 1:])
+ weights.mean[..., None, :, :-1])
inference/statistics.py | oracle | sums of rho E[a a~]: covariance dropped (erratum 1)
- cross = cross + xp.concat([xp.zeros_like(spread[..., :1]), spread], axis=-1)
+ cross = cross + 0.0
inference/global_step.py | weights | hidden weights: E[1/eta²] forgotten
- precision = noise_precision[..., None] * layer_moment
+ precision = layer_moment
inference/global_step.py | oracle | noise: ½ of the count forgotten
- prior.concentration + 0.5 * statistics.count
+ prior.concentration + statistics.count
inference/global_step.py | oracle | tau: ½ of the squares forgotten
- model.n_weights(index), 0.5 * scaled_squares(layer)
+ model.n_weights(index), scaled_squares(layer)
inference/global_step.py | oracle | psi: tau for 1/tau
- 0.5 * global_precision(layer) * weight_squares
+ 0.5 / global_precision(layer) * weight_squares
inference/global_step.py | oracle | slab: no part of a weight's precision
- shrinkage = shrinkage + inverse_gamma.mean_inverse(layer.slab_variance)
+ shrinkage = shrinkage + 0.0
inference/global_step.py | oracle | S_L: noise of the output forgotten
- sum(noise_precision[..., None, None] * second, axis=-3)
+ sum(second, axis=-3)
inference/empirical_bayes.py | hyperparameters | EM, inverse gamma: L for L+1
- scale=count * -prior.order / inverse
+ scale=(count - 1) * -prior.order / inverse
inference/elbo.py | oracle | bound, likelihood: sign of the residual
- constant + inverse_gamma.mean_inverse(noise) * residual
+ constant - inverse_gamma.mean_inverse(noise) * residual
inference/elbo.py | oracle | bound, activations: entropy of S_L dropped
- entropy = entropy + 0.5 * statistics.count * shared
+ entropy = entropy + 0.0 * shared
inference/elbo.py | oracle | bound, gates: sign of the entropy
- - constant + sums.gate_entropy
+ - constant - sums.gate_entropy
inference/elbo.py | oracle | bound, omega: sign of E[z²] (erratum 4)
- sums.polya_gamma_ratio - 0.5 * squares
+ sums.polya_gamma_ratio + 0.5 * squares
inference/elbo.py | oracle | bound, weights: a constant of the prior (erratum 8)
- (n_weights * log(2.0 * pi) + squares)
+ (width * log(2.0 * pi) + squares)
inference/elbo.py | oracle | bound, noise: prior of the first layer for all
- model.noise(i)
+ model.noise(0)
inference/elbo.py | oracle | bound, tau: that of the first layer for all
- elbo_term(layer.global_shrinkage
+ elbo_term(factors.layers[0].global_shrinkage
inference/elbo.py | oracle | bound, psi and slab: sign of the squares
- terms = terms - 0.5 * inverse_gamma.mean_inverse(slab)
+ terms = terms + 0.5 * inverse_gamma.mean_inverse(slab)
""".strip().splitlines()


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of src."""
    copy = tmp_path_factory.mktemp("mutants") / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("_old", "__pycache__"))
    return copy


def run(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the copy before everything else on its path."""
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **quick, "PYTHONPATH": str(source)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def run_tests(source: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    return run(source, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests)


def rewrite(path: Path, text: str) -> None:
    """Without the compiled file, which could pass for that of a text as long and as old."""
    path.write_text(text, encoding="utf-8")
    Path(cache_from_source(path)).unlink(missing_ok=True)


def test_the_copy_is_green(source):
    where = run(source, "-c", "import bowtienet; print(bowtienet.__file__)").stdout
    assert Path(where.strip()).is_relative_to(source)
    result = run_tests(source, *TESTS.values())
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("i", range(0, len(MUTANTS), 3), ids=MUTANTS[::3])
def test_a_mutant_is_red(i, source):
    file, tests, _ = MUTANTS[i].split(" | ")
    line, mutated = (text[2:] for text in MUTANTS[i + 1 : i + 3])
    path = source / "bowtienet" / file
    original = path.read_text(encoding="utf-8")
    assert original.count(line) == 1
    rewrite(path, original.replace(line, mutated))
    try:
        result = run_tests(source, TESTS[tests])
    finally:
        rewrite(path, original)
    # 1 is the code of tests that failed; others would be errors of another kind.
    assert result.returncode == 1, result.stdout
