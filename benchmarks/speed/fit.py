"""Seconds and scores of one fit: bowtienet beside a Gaussian process and mean-field VI.

Puts a tenth of concrete (`bowtienet.data.sets`) aside with seeds 130, 131, ... and fits each model
to the rest. `make bench-fit` runs it and prints Markdown; progress goes to standard error. Scores
are in the unit of the target.

bowtienet   `BowTieRegressor` as it comes; its defaults were chosen with a look at splits 100 to 104
            of this set among others (docs/measurements/accuracy.md), which are not used here.
GPR         scikit-learn, one length scale per input, white noise, two restarts; its default bounds
            found the optimum of narrower ones in less time.
NumPyro     a ReLU network with 50 hidden units, a normal guide without correlations, 10,000 Adam
            steps on all rows, 1,000 draws to predict. Its settings were the best of those tried on
            split 100, test part included, over six starts (± their standard deviation):

            | learning rate | bound | test NLL |
            |---|---|---|
            | 0.003 | -704 ± 4 | 3.210 ± 0.008 |
            | 0.005 | -688 ± 4 | 3.192 ± 0.011 |
            | 0.01 | -688 ± 8 | 3.188 ± 0.020 |
            | 0.02 | -698 ± 16 | 3.206 ± 0.047 |
            | 0.03 | -711 ± 14 | 3.235 ± 0.024 |
            | 0.02, cosine decay | -671 ± 3 | 3.179 ± 0.024 |
            | 0.03, cosine decay | -673 ± 2 | 3.196 ± 0.032 |

            Smaller first deviations of the guide (0.01) did not help. From a single start, four
            draws per step gave the same at four to five times the seconds, and weights whose
            priors hold the 1/√fan-in, rather than the network, were worse.

Each fit runs in a process of its own, the models in turn within a split, so that none finds the
caches, threads or compiled functions of another. Imports are not timed; compilation is. That of
NumPyro holds its start too, which runs step by step and compiles each operation as it meets it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np

FIRST_SEED = 130
HIDDEN = 50
STEPS = 10_000
LEARNING_RATE = 0.02
DRAWS = 1_000


@dataclass(frozen=True, kw_only=True)
class Split:
    """Rows to fit, (n, inputs) and (n,), and rows to predict."""

    x: np.ndarray
    y: np.ndarray
    new_x: np.ndarray
    new_y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a fit took, and its predictions: one mixture of K Gaussians per new row."""

    seconds: float
    """All of them, compilation included."""
    compiling: float = 0.0
    weights: np.ndarray = field(default_factory=lambda: np.ones(1))
    """(K,), sum to one."""
    means: np.ndarray
    """(K, rows)."""
    deviations: np.ndarray
    """(K, rows)."""


def load(seed: int) -> Split:
    """The split of one seed."""
    from bowtienet.data.sets import load_set

    table = load_set("concrete").table
    order = np.random.default_rng(seed).permutation(len(table))
    test, train = np.split(table[order], [len(table) // 10])
    return Split(x=train[:, :-1], y=train[:, -1], new_x=test[:, :-1], new_y=test[:, -1])


def fit_bowtienet(split: Split, seed: int, n_jobs: int, **settings: Any) -> Fit:
    """The estimator with its defaults, but for the settings given."""
    from bowtienet import BowTieRegressor

    begin = time.perf_counter()
    estimator = BowTieRegressor(random_state=seed, n_jobs=n_jobs, **settings)
    estimator.fit(split.x, split.y)
    seconds = time.perf_counter() - begin
    forecast = estimator.predict_dist(split.new_x)
    return Fit(
        seconds=seconds,
        weights=np.asarray(forecast.weights),
        means=np.asarray(forecast.means),
        deviations=np.asarray(forecast.deviations),
    )


def fit_gpr(split: Split, seed: int, n_jobs: int) -> Fit:
    """Gaussian process; its deviations hold the noise, which is part of the kernel."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF(np.ones(split.x.shape[1])) + WhiteKernel()
    process = GaussianProcessRegressor(
        kernel, n_restarts_optimizer=2, normalize_y=True, random_state=seed
    )
    estimator = make_pipeline(StandardScaler(), process)
    begin = time.perf_counter()
    estimator.fit(split.x, split.y)
    seconds = time.perf_counter() - begin
    mean, deviation = estimator.predict(split.new_x, return_std=True)
    return Fit(seconds=seconds, means=mean[None], deviations=deviation[None])


def fit_numpyro(split: Split, seed: int, n_jobs: int) -> Fit:
    """Mean-field VI in single precision, on standardised inputs and targets."""
    import jax
    from numpyro.infer import SVI, Predictive, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal
    from numpyro.optim import Adam

    begin = time.perf_counter()
    centre, scale = split.x.mean(axis=0), split.x.std(axis=0)
    centre_y, scale_y = split.y.mean(), split.y.std()
    x = np.float32((split.x - centre) / scale)
    y = np.float32((split.y - centre_y) / scale_y)
    guide = AutoNormal(relu_network, init_scale=0.1)
    svi = SVI(relu_network, guide, Adam(cosine_decay), Trace_ELBO())
    start_key, draw_key = jax.random.split(jax.random.key(seed))
    start = svi.init(start_key, x, y)

    @jax.jit
    def train(state, x, y):
        return jax.lax.fori_loop(0, STEPS, lambda _, state: svi.update(state, x, y)[0], state)

    compiled = train.lower(start, x, y).compile()
    compiling = time.perf_counter() - begin
    params = svi.get_params(jax.block_until_ready(compiled(start, x, y)))
    seconds = time.perf_counter() - begin

    posterior = guide.sample_posterior(draw_key, params, sample_shape=(DRAWS,))
    network = Predictive(relu_network, posterior, return_sites=["mean"])
    means = network(draw_key, np.float32((split.new_x - centre) / scale))["mean"]
    noise = np.sqrt(np.float64(posterior["noise_variance"]))[:, None]
    return Fit(
        seconds=seconds,
        compiling=compiling,
        weights=np.full(DRAWS, 1.0 / DRAWS),
        means=centre_y + scale_y * np.float64(means),
        deviations=np.broadcast_to(scale_y * noise, means.shape),
    )


def cosine_decay(step: int) -> float:
    """Learning rate, from its full size at the first step to zero at the last."""
    import jax.numpy as jnp

    return 0.5 * LEARNING_RATE * (1.0 + jnp.cos(jnp.pi * step / STEPS))


def relu_network(x: np.ndarray, y: np.ndarray | None = None) -> None:
    """y = b' + W' relu(b + W x / √inputs) / √hidden + noise, with N(0, 1) on b, W, b', W'."""
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions as dist

    def normal(name: str, *shape: int):
        return numpyro.sample(name, dist.Normal().expand(shape).to_event(len(shape)))

    inputs = x.shape[1]
    z = x @ normal("weights_in", inputs, HIDDEN) / inputs**0.5 + normal("bias_in", HIDDEN)
    signal = jnp.maximum(z, 0.0) @ normal("weights_out", HIDDEN) / HIDDEN**0.5
    mean = numpyro.deterministic("mean", signal + normal("bias_out"))
    variance = numpyro.sample("noise_variance", dist.InverseGamma(1.0, 0.1))
    numpyro.sample("y", dist.Normal(mean, jnp.sqrt(variance)), obs=y)


MODELS = {"bowtienet": fit_bowtienet, "GPR": fit_gpr, "NumPyro": fit_numpyro}


def score(fit: Fit, y: np.ndarray) -> dict[str, float]:
    """RMSE of the mixtures' means, mean -log density, mean CRPS, coverage of 5 % to 95 %."""
    from bowtienet.evaluation import evaluate
    from bowtienet.prediction.mixture import build_mixture

    found = evaluate(y, build_mixture(fit.weights, fit.means, fit.deviations), coverage=0.9)
    return {
        "RMSE": found.rmse,
        "NLL": found.nll,
        "CRPS": found.crps,
        "coverage": found.coverage,
    }


def measure(model: str, seed: int, n_jobs: int) -> dict[str, float]:
    """Seconds and scores of one fit in this process."""
    split = load(seed)
    fit = MODELS[model](split, seed, n_jobs)
    return {
        "seconds": fit.seconds,
        "compiling": fit.compiling,
        "rows": len(split.y),
        **score(fit, split.new_y),
    }


def in_own_process(model: str, seed: int, n_jobs: int) -> dict[str, float]:
    """The same in a new process, whose warnings and errors go to standard error."""
    command = [sys.executable, __file__, "--measure", json.dumps([model, seed, n_jobs])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout)
    name = f"{model} with n_jobs={n_jobs}" if model == "bowtienet" else model
    message = f"seed {seed}, {name}: {result['seconds']:.1f} s, NLL {result['NLL']:.3f}"
    print(message, file=sys.stderr, flush=True)
    return result


def collect(models: list[str], seeds: range, n_jobs: int) -> dict[str, list[dict[str, float]]]:
    """Results of every split by model; those of bowtienet with one job come under "one job"."""
    results: dict[str, list[dict[str, float]]] = {name: [] for name in models}
    results["one job"] = []
    for seed in seeds:
        for model in models:
            results[model].append(in_own_process(model, seed, n_jobs))
            if model == "bowtienet":
                results["one job"].append(in_own_process(model, seed, 1))
    return results


def cell(runs: list[dict[str, float]], name: str, digits: int) -> str:
    """Mean ± standard deviation over the splits."""
    values = [run[name] for run in runs]
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def show(results: dict[str, list[dict[str, float]]], n_jobs: int) -> None:
    one_job = results.pop("one job")
    runs = next(iter(results.values()))
    print(
        f"Splits of concrete: {len(runs)}, with {runs[0]['rows']} rows to fit; mean ± standard "
        f"deviation over the splits. Usable cores: {joblib.cpu_count()}; absolute times "
        "are those of a shared machine.\n"
    )
    print("| model | fit, s | of these compiling, s | RMSE | NLL | CRPS | 90 % coverage |")
    print("|---|---|---|---|---|---|---|")
    for model, runs in results.items():
        print(
            f"| {model} | {cell(runs, 'seconds', 1)} | {cell(runs, 'compiling', 1)} "
            f"| {cell(runs, 'RMSE', 2)} | {cell(runs, 'NLL', 3)} | {cell(runs, 'CRPS', 2)} "
            f"| {cell(runs, 'coverage', 3)} |"
        )
    if one_job:
        print(
            f"\nbowtienet ran with n_jobs={n_jobs}; with n_jobs=1 it took "
            f"{cell(one_job, 'seconds', 1)} s. GPR and NumPyro use the cores as they like."
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=3, help="number of splits")
    parser.add_argument("--n-jobs", type=int, default=2, help="n_jobs of bowtienet")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*json.loads(arguments.measure))))
        return
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.splits)
    show(collect(arguments.models, seeds, arguments.n_jobs), arguments.n_jobs)


if __name__ == "__main__":
    main()
