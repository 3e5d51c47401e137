"""Outcomes of one observation with their own latent variables, in plain loops over outputs.

Every bound is E_q[log p(y, latents | z)] - E_q[log q(latents)] written out from the augmented
densities with q's parameters free, so that its derivatives in them can be asked for (it is written
in JAX). Nothing is taken from the library.

kind        latents                q of one observation
student_t   lambda_d               Gamma(shape_d, rate_d)
binary      omega                  PG(1, tilt)
classes     lambda, n_j, omega_j   Gamma(shape, C), Poisson(g_j), PG(y_j + n_j, tilt_j)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy import special as jax_special
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Local = dict[str, Any]
"""Parameters of q of one observation by name, arrays over outputs."""

LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, kw_only=True)
class OracleOutcome:
    kind: str
    freedom: float = 4.0

    @property
    def has_noise(self) -> bool:
        return self.kind == "student_t"


def log_cosh(value: Any) -> Any:
    size = jnp.abs(value)
    return size + jnp.log1p(jnp.exp(-2.0 * size)) - jnp.log(2.0)


def pg_mean(count: Any, tilt: Any) -> Any:
    """E[omega] of PG(count, tilt)."""
    return count * jnp.tanh(tilt / 2.0) / (2.0 * tilt)


def pg_ratio(count: Any, tilt: Any) -> Any:
    """E[log PG(omega | count, 0) - log PG(omega | count, tilt)] under the latter."""
    return 0.5 * tilt**2 * pg_mean(count, tilt) - count * log_cosh(tilt / 2.0)


def gamma_log(shape: Any, rate: Any) -> Any:
    return jax_special.digamma(shape) - jnp.log(rate)


def expected_log_gamma(a: Any, b: Any, mean: Any, mean_log: Any) -> Any:
    """E[log Gamma(x | a, b)] from E[x] and E[log x]."""
    return a * jnp.log(b) - jax_special.gammaln(a) + (a - 1.0) * mean_log - b * mean


def counts_of(outcome: OracleOutcome, local: Local, y: Array, d: int) -> tuple[Any, Any]:
    """How often sigmoid(z_d) and sigmoid(-z_d) stand in the likelihood."""
    if outcome.kind == "binary":
        return float(y[0]), 1.0 - float(y[0])
    return float(y[0] == d), local["poisson"][d]


def bound(
    outcome: OracleOutcome,
    local: Local,
    y: Array,
    mean: Array,
    square: Array,
    precision: Array,
    log_noise: Array,
) -> Any:
    """The bound on E[log p(y | z)] for E[z], E[z²], and E[1/eta²], E[log eta²] of the outputs."""
    total: Any = 0.0
    for d in range(len(mean)):
        if outcome.kind == "student_t":
            a, b = local["shape"][d], local["rate"][d]
            weight, log_weight = a / b, gamma_log(a, b)
            error = y[d] ** 2 - 2.0 * y[d] * mean[d] + square[d]
            total += -0.5 * LOG_2PI - 0.5 * log_noise[d] + 0.5 * log_weight
            total += -0.5 * precision[d] * weight * error
            half = 0.5 * outcome.freedom
            total += expected_log_gamma(half, half, weight, log_weight)
            total -= expected_log_gamma(a, b, weight, log_weight)
            continue
        # sigmoid(x)^a sigmoid(-x)^b = 2^-(a+b) e^{(a-b) x/2} E[e^{-omega x²/2}], PG(a + b, 0)
        for_it, against = counts_of(outcome, local, y, d)
        count, tilt = for_it + against, local["tilt"][d]
        total += -count * math.log(2.0) + 0.5 * (for_it - against) * mean[d]
        total += -0.5 * pg_mean(count, tilt) * square[d] + pg_ratio(count, tilt)
    if outcome.kind == "classes":
        a, b = local["shape"][0], float(len(mean))
        expected, expected_log = a / b, gamma_log(a, b)
        for d in range(len(mean)):
            g = local["poisson"][d]  # E[log Po(n | lambda) - log Po(n | g)]
            total += g * expected_log - expected - (g * jnp.log(g) - g)
        total -= expected_log_gamma(a, b, expected, expected_log)
    return total


def parabola(outcome: OracleOutcome, local: Local, y: Array, width: int) -> tuple[Array, Array]:
    """p and k (D,): the bound is Σ_d c_d (k_d E[z_d] - ½ p_d E[z_d²]) and what has no z."""
    p, k = np.zeros(width), np.zeros(width)
    for d in range(width):
        if outcome.kind == "student_t":
            p[d] = local["shape"][d] / local["rate"][d]
            k[d] = p[d] * y[d]
            continue
        for_it, against = counts_of(outcome, local, y, d)
        p[d] = pg_mean(for_it + against, local["tilt"][d])
        k[d] = 0.5 * (for_it - against)
    return p, k


def updated(
    outcome: OracleOutcome, y: Array, mean: Array, square: Array, precision: Array
) -> Local:
    """q of one observation at its best."""
    width = len(mean)
    if outcome.kind == "student_t":
        shape, rate = np.zeros(width), np.zeros(width)
        for d in range(width):
            error = y[d] ** 2 - 2.0 * y[d] * mean[d] + square[d]
            shape[d] = 0.5 * outcome.freedom + 0.5
            rate[d] = 0.5 * outcome.freedom + 0.5 * precision[d] * error
        return {"shape": shape, "rate": rate}
    tilt = np.sqrt(square)
    if outcome.kind == "binary":
        return {"tilt": tilt}
    shape = 1.0
    for _ in range(2000):  # alpha = 1 + Σ g, the plain fixed point
        log_rate = special.digamma(shape) - math.log(width)
        poisson = np.exp(log_rate - 0.5 * mean) / (2.0 * np.cosh(tilt / 2.0))
        shape = 1.0 + poisson.sum()
    return {"tilt": tilt, "poisson": poisson, "shape": np.array([shape])}


def random_local(rng: np.random.Generator, outcome: OracleOutcome, width: int) -> Local:
    if outcome.kind == "student_t":
        return {"shape": rng.uniform(1.0, 4.0, width), "rate": rng.uniform(1.0, 4.0, width)}
    local = {"tilt": rng.uniform(0.3, 3.0, width)}
    if outcome.kind == "classes":
        local |= {"poisson": rng.uniform(0.2, 2.0, width), "shape": rng.uniform(1.0, 3.0, 1)}
    return local


def random_targets(
    rng: np.random.Generator, outcome: OracleOutcome, count: int, width: int
) -> Array:
    if outcome.kind == "student_t":
        return rng.standard_normal((count, width))
    if outcome.kind == "binary":
        return rng.integers(0, 2, (count, 1)).astype(float)
    return rng.integers(0, width, (count, 1)).astype(float)
