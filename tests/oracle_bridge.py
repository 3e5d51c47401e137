"""Between the oracle's lists over observations and bowtienet's arrays over blocks of rows.

bowtienet knows three things that the oracle does not, and a state must respect them to have a
counterpart: all rows share the last hidden layer's covariance, a fixed tau is the same in every
layer, and the first layer's offset is t + M x. `random_case` draws such states.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import stats

from bowtienet._arrays import map_arrays, unpack
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.generalized_inverse_gaussian import GeneralizedInverseGaussian
from bowtienet.distributions.half_cauchy import HalfCauchy
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.distributions.point_mass import PointMass
from bowtienet.inference.elbo import ElboTerms
from bowtienet.inference.elbo import elbo as bowtie_elbo
from bowtienet.inference.statistics import Statistics, block_statistics
from bowtienet.model.architecture import build_architecture
from bowtienet.model.model import BowTieModel, Rows
from bowtienet.model.shrinkage import Shrinkage, ShrinkagePrior
from bowtienet.outcomes import (
    GAUSSIAN,
    Binary,
    Classes,
    Outcome,
    RowTerms,
    StudentT,
)
from bowtienet.posterior.factors import (
    Activations,
    LayerFactors,
    LocalFactors,
    LocalMemory,
    Posterior,
)
from bowtienet.posterior.moments import ChainMoments, chain_moments
from tests.oracles import outcome_loops
from tests.oracles import plain_loops as oracle
from tests.oracles.outcome_loops import OracleOutcome
from tests.oracles.plain_loops import Array, OraclePrior, OracleState

RTOL = 1e-9
"""Relative difference from the oracle that is rounding, its quadratures included."""

WIDTHS = ((3, 2), (3, 4, 2), (2, 3, 2, 2), (2, 3, 2, 3, 1))
"""No, one, two and three hidden layers; unequal widths; mostly two outputs."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One state, its prior and data, in the oracle's form; the rest is converted on demand."""

    state: OracleState
    prior: OraclePrior
    x: Array
    y: Array
    weights: Array

    @property
    def model(self) -> BowTieModel:
        return to_model(self.state, self.prior)

    @property
    def factors(self) -> Posterior:
        return alone(to_global(self.state))

    @property
    def local(self) -> LocalFactors:
        return alone(to_local(self.state, self.x, self.y))

    @property
    def memory(self) -> LocalMemory:
        return alone(to_memory(self.state, self.y))

    @property
    def moments(self) -> ChainMoments:
        return chain_moments(self.local.activations, self.x)

    @property
    def rows(self) -> Rows:
        return Rows(inputs=self.x, targets=self.y, weights=self.weights)

    @property
    def statistics(self) -> Statistics:
        return block_statistics(self.local, self.moments, self.y, self.weights)

    @property
    def elbo(self) -> ElboTerms:
        return bowtie_elbo(self.model, self.factors, self.statistics)


def random_case(
    rng: np.random.Generator,
    widths: tuple[int, ...],
    families: str | tuple[str, str] = "student_t",
    count: int = 3,
    outcome: OracleOutcome | None = None,
) -> Case:
    """Random state, prior and data that both sides can express."""
    state, prior = oracle.random_state(rng, widths, count, families)
    x, y, weights = oracle.random_data(rng, widths, count)
    if outcome is not None:
        y = outcome_loops.random_targets(rng, outcome, count, widths[-1])
        local = [outcome_loops.random_local(rng, outcome, widths[-1]) for _ in range(count)]
        state = replace(state, outcome=outcome, outcome_local=local)
    return Case(state=with_shared_covariance(state), prior=prior, x=x, y=y, weights=weights)


def with_shared_covariance(state: OracleState) -> OracleState:
    """The state with row 0's last hidden covariance in all rows, and layer 0's fixed tau.

    Rows of an outcome that is not Gaussian have covariances of their own.
    """
    tau = [state.fixed_tau[0]] * len(state.fixed_tau)
    if state.outcome is not None:
        return replace(state, fixed_tau=tau)
    covariance = [[*row[:-1], state.covariance[0][-1]] if row else [] for row in state.covariance]
    return replace(state, covariance=covariance, fixed_tau=tau)


def swept(case: Case, sweeps: int) -> Case:
    """The case after some of the oracle's own sweeps: every factor once, local ones first."""
    state, prior, data = case.state, case.prior, (case.x, case.y, case.weights)
    for _ in range(sweeps):
        state = oracle.update_activations(state, case.x, case.y)
        state = oracle.update_gates(oracle.update_tilts(state, case.x), case.x)
        if state.outcome is not None:
            state = oracle.update_outcome(state, case.x, case.y)
        state = oracle.update_noise(oracle.update_weights(state, prior, *data), prior, *data)
        state = oracle.update_global_shrinkage(state, prior)
        state = oracle.update_slab(oracle.update_local_shrinkage(state, prior), prior)
    return replace(case, state=with_shared_covariance(state))


def alone(container: Any) -> Any:
    """The container of one network with a leading axis of 1."""
    return map_arrays(lambda x: np.asarray(x)[None], container)


def single(container: Any) -> Any:
    """The container of one network without its leading axis."""
    return map_arrays(lambda x: x[0], container)


def to_shrinkage(gig: tuple[float, Any, float] | None, fixed: float) -> Shrinkage:
    if gig is None:
        return PointMass(value=float(fixed))
    return GeneralizedInverseGaussian(order=gig[0], scale=gig[1], rate=gig[2])


def as_arrays(tau: oracle.Gig | None) -> tuple[float, Any, Any] | None:
    """Scale and rate of q(tau) get the axis of the networks; a rate of 0 names a family."""
    if tau is None:
        return None
    order, scale, rate = tau
    return order, np.asarray(scale), rate and np.asarray(rate)


def to_prior(prior: oracle.ScalePrior | None, fixed: float) -> ShrinkagePrior:
    if isinstance(prior, oracle.Cauchy):
        return HalfCauchy(scale=prior.scale)
    return to_shrinkage(prior, fixed)


def to_slab(values: tuple[Any, Any] | None) -> InverseGamma | None:
    if values is None:
        return None
    return InverseGamma(concentration=values[0], scale=values[1])


def to_outcome(outcome: OracleOutcome | None, n_outputs: int) -> Outcome:
    if outcome is None:
        return GAUSSIAN
    if outcome.kind == "student_t":
        return StudentT(freedom=outcome.freedom)
    if outcome.kind == "classes":
        return Classes(n_classes=n_outputs)
    return Binary()


def to_row_terms(state: OracleState, x: Array, y: Array | None) -> RowTerms | None:
    """p and k; the constant is what the oracle's bound has beside the engine's terms in z."""
    if state.outcome is None:
        return None
    precision, linear, constant, parameter = [], [], [], []
    noise_precision, log_noise = oracle.output_noise(state)
    for n in range(x.shape[0]):
        local, width = state.outcome_local[n], state.widths[-1]
        p, k = outcome_loops.parabola(state.outcome, local, y[n], width)
        mean, square = oracle.output_moments(state, x[n], n)
        with_z = np.sum(k * mean - 0.5 * p * square)
        if state.outcome.has_noise:
            error = y[n] ** 2 - 2.0 * y[n] * mean + square
            terms = oracle.LOG_2PI + log_noise + noise_precision * p * error
            with_z = -0.5 * np.sum(terms)
        constant.append(oracle.outcome_bound(state, x[n], y[n], n) - with_z)
        precision.append(p)
        linear.append(k)
        parameter.append([])
        if state.outcome.kind == "student_t":
            log_weight = outcome_loops.gamma_log(local["shape"], local["rate"])
            parameter[-1] = [np.mean(log_weight - p)]
    return RowTerms(
        precision=np.stack(precision),
        linear=np.stack(linear),
        constant=np.array(constant),
        parameter=np.array(parameter),
    )


def to_model(state: OracleState, prior: OraclePrior) -> BowTieModel:
    widths = state.widths
    return BowTieModel(
        architecture=build_architecture(widths[0], widths[1:-1], widths[-1]),
        global_shrinkage=to_prior(prior.global_gig, state.fixed_tau[0]),
        local_shrinkage=tuple(
            to_prior(gig, fixed)
            for gig, fixed in zip(prior.local_gig, state.fixed_psi, strict=True)
        ),
        hidden_noise=InverseGamma(concentration=prior.hidden_noise[0], scale=prior.hidden_noise[1]),
        output_noise=InverseGamma(concentration=prior.output_noise[0], scale=prior.output_noise[1]),
        bias_variance=prior.bias_variance,
        slab=to_slab(prior.slab),
        temperature=state.temperature,
        outcome=to_outcome(state.outcome, widths[-1]),
    )


def to_global(state: OracleState) -> Posterior:
    layers = tuple(
        LayerFactors(
            weights=GaussianRows(mean=state.weight_mean[l], covariance=state.weight_covariance[l]),
            noise_variance=InverseGamma(
                concentration=state.noise_concentration[l], scale=state.noise_scale[l]
            ),
            global_shrinkage=to_shrinkage(as_arrays(state.tau[l]), state.fixed_tau[l]),
            local_shrinkage=to_shrinkage(state.psi[l], state.fixed_psi[l]),
            slab_variance=to_slab(state.slab[l]),
        )
        for l in range(len(state.widths) - 1)
    )
    hidden = oracle.hidden_layers(state)
    shared = state.covariance[0][-1] if hidden and state.outcome is None else None
    return Posterior(layers=layers, shared_covariance=shared)


def to_activations(state: OracleState, x: Array) -> tuple[Activations, ...]:
    result = []
    count, last = len(state.offset), oracle.hidden_layers(state) - 1
    for l in range(last + 1):
        offset = np.stack([state.offset[n][l] for n in range(count)])
        gain = np.stack([state.gain[n][l] for n in range(count)])
        covariance = np.stack([state.covariance[n][l] for n in range(count)])
        if l == 0:
            offset = offset + np.einsum("nij,nj->ni", gain, x)
        log_determinant = np.linalg.slogdet(covariance)[1]
        if l == last and state.outcome is None:
            assert np.ptp(covariance, axis=0).max() == 0.0, "rows must share the last covariance"
            covariance, log_determinant = covariance[:1], None
        result.append(
            Activations(
                offset=offset,
                gain=None if l == 0 else gain,
                covariance=covariance,
                log_determinant=log_determinant,
            )
        )
    return tuple(result)


def to_local(state: OracleState, x: Array, y: Array | None = None) -> LocalFactors:
    return LocalFactors(
        activations=to_activations(state, x),
        gate_probability=stack(state.gate),
        gate_entropy=tuple(stats.bernoulli(rho).entropy().sum(axis=1) for rho in stack(state.gate)),
        tilt=stack(state.tilt),
        outcome=to_row_terms(state, x, y),
    )


def to_memory(state: OracleState, y: Array | None = None) -> LocalMemory:
    parabola: tuple[Array, ...] = ()
    if state.outcome is not None:
        rows = zip(state.outcome_local, y, strict=True)
        pairs = [outcome_loops.parabola(state.outcome, q, y_n, state.widths[-1]) for q, y_n in rows]
        parabola = stack(pairs)
    return stack(state.gate), stack(state.tilt)[1:], parabola


def stack(values: list[list[Array]]) -> tuple[Array, ...]:
    """[n][l] -> (l) of arrays over n."""
    return tuple(np.stack(column) for column in zip(*values, strict=True))


def unstack(values: tuple[Array, ...], count: int) -> list[list[Array]]:
    """(l) of arrays over n -> [n][l]."""
    return [[np.asarray(value[n]) for value in values] for n in range(count)]


def oracle_elbo_terms(case: Case) -> dict[str, float]:
    """The oracle's bound by the names of `ElboTerms`."""
    return oracle.elbo(case.state, case.prior, case.x, case.y, case.weights)


def assert_close(actual: Any, expected: Any, rtol: float = RTOL, name: str = "") -> None:
    """Equal up to `rtol` of the largest entry of `expected`: an entry near 0 owes no digits."""
    expected = np.asarray(expected, dtype=float)
    scale = float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * scale, err_msg=name)


def assert_equal(first: Any, second: Any) -> None:
    """To the bit."""
    map_arrays(np.testing.assert_array_equal, first, second)


def assert_same(actual: Any, expected: Any, rtol: float = RTOL, name: str = "") -> None:
    """`assert_close` through nested containers of the same type."""
    if expected is None:
        assert actual is None, name
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), name
        for index, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert_same(a, b, rtol, f"{name}[{index}]")
    elif hasattr(expected, "__dataclass_fields__"):
        assert type(actual) is type(expected), name
        for field in fields(expected):
            a, b = getattr(actual, field.name), getattr(expected, field.name)
            assert_same(a, b, rtol, f"{name}.{field.name}")
    else:
        assert np.shape(actual) == np.shape(expected), name
        assert_close(actual, expected, rtol, name)


def full_second_moment(moments: ChainMoments, layer: int) -> Array:
    """E[a~_{l-1} a~_{l-1}'] (n, K+1, K+1) of hidden layer `layer` of one network, unpacked."""
    second = moments.second[layer]
    second = second if second.ndim == 2 else second[0]
    return unpack(second, moments.inputs[layer].shape[-1])
