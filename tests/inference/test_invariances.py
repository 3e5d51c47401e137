"""What must not matter does not.

That is the order of rows, columns, units and outputs, how rows are cut into blocks, and which
networks stand side by side. Fits of both sides start from the same factors, made once and
rearranged. Rounding differs between the two and grows over sweeps, so histories are compared at
1e-8, single steps at 1e-11.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bowtienet._arrays import map_arrays
from bowtienet.distributions.gaussian import GaussianRows
from bowtienet.distributions.inverse_gamma import InverseGamma
from bowtienet.inference import ascend as module
from bowtienet.inference.ascend import Ascent, RowProvider, ascend, build_blocks
from bowtienet.inference.elbo import elbo
from bowtienet.inference.local_step import initialize_local, local_step
from bowtienet.model.model import BowTieModel, Rows, take_rows
from bowtienet.outcomes import GAUSSIAN, Classes
from bowtienet.posterior.factors import LayerFactors, Posterior
from bowtienet.prediction.variational import output_moments, output_noise
from tests import builders
from tests.builders import M, Point, network_of
from tests.oracle_bridge import assert_same

N, SWEEPS, LONG = 23, 12, 40
HISTORY, FACTORS, STEP = 1e-8, 1e-6, 1e-11
CASES = [
    ((), "student_t", "gaussian"),
    ((5,), "laplace", "gaussian"),
    ((4, 3), "regularized_horseshoe", "gaussian"),
    ((4, 3), "gaussian", "gaussian"),
    ((3, 4, 2), "normal_inverse_gaussian", "gaussian"),
    ((), "normal_gamma", "classes"),
    ((5,), "student_t", "student_t of one"),
    ((4, 3), "horseshoe", "student_t"),
    ((4,), "gig", "classes"),
    ((3, 4, 2), "student_t", "binary"),
]


@pytest.fixture(params=CASES, ids=str)
def point(request, rng) -> Point:
    """Two networks of which nothing is equal, with rows of unequal weights."""
    hidden, family, name = request.param
    outcome, n_outputs = builders.OUTCOMES.get(name, (GAUSSIAN, 2))
    return builders.random_point(rng, hidden, family, n=N, outcome=outcome, n_outputs=n_outputs)


def fit(point: Point, sweeps: int = SWEEPS) -> Ascent:
    """A few sweeps that never stop early, so that both histories have the same length."""
    return ascend(point.model, point.factors, point.rows, max_iter=sweeps, tol=0.0)


def assert_same_fit(first: Ascent, second: Ascent) -> None:
    assert min(map(len, second.elbo_history)) >= 2
    assert_same(first.elbo_history, second.elbo_history, rtol=HISTORY)
    assert_same(first.posterior, second.posterior, rtol=FACTORS)
    assert_same(first.elbo_terms, second.elbo_terms, rtol=FACTORS)


def rearranged_layer(layer: LayerFactors, inputs: np.ndarray, units: np.ndarray) -> LayerFactors:
    """The layer with its inputs and units in another order; the bias stays first."""
    columns = np.concatenate([[0], inputs + 1])
    scales = partial(map_arrays, lambda x: x[:, units][:, :, inputs])
    return replace(
        layer,
        weights=GaussianRows(
            mean=layer.weights.mean[:, units][:, :, columns],
            covariance=layer.weights.covariance[:, units][:, :, columns][..., columns],
        ),
        noise_variance=map_arrays(lambda x: x[:, units], layer.noise_variance),
        local_shrinkage=scales(layer.local_shrinkage),
        slab_variance=scales(layer.slab_variance),
    )


def rearranged(posterior: Posterior, orders: list[np.ndarray]) -> Posterior:
    """The networks with inputs, hidden units and outputs in other orders."""
    layers = zip(posterior.layers, orders[:-1], orders[1:], strict=True)
    shared, last = posterior.shared_covariance, orders[-2]
    return Posterior(
        layers=tuple(rearranged_layer(*each) for each in layers),
        shared_covariance=None if shared is None else shared[:, last][:, :, last],
    )


def rearranged_model(model: BowTieModel, order: np.ndarray) -> BowTieModel:
    """Each output has a noise prior of its own."""
    noise = model.output_noise
    noise = InverseGamma(concentration=noise.concentration, scale=noise.scale[order])
    return replace(model, output_noise=noise)


def test_order_of_rows_columns_units_and_outputs(point, rng):
    orders = [np.roll(np.arange(width), 1) for width in point.model.architecture.widths]
    outputs = orders[-1]
    rows = take_rows(point.rows, rng.permutation(N))
    if isinstance(point.model.outcome, Classes):
        targets = np.argsort(outputs)[rows.targets.astype(int)].astype(float)
    else:
        targets = rows.targets[:, outputs]
    other = replace(
        point,
        model=rearranged_model(point.model, outputs),
        rows=replace(rows, inputs=rows.inputs[:, orders[0]], targets=targets),
        factors=rearranged(point.factors, orders),
    )
    first, second = fit(point), fit(other)
    assert_same_fit(second, replace(first, posterior=rearranged(first.posterior, orders)))
    new = rng.normal(size=(6, 3))
    expected = output_moments(first.model, first.posterior, new)
    found = output_moments(second.model, second.posterior, new[:, orders[0]])
    assert_same(found, map_arrays(lambda x: x[..., outputs], expected), rtol=FACTORS)
    expected = output_noise(first.model, first.posterior)[..., outputs]
    assert_same(output_noise(second.model, second.posterior), expected, rtol=FACTORS)


def pass_in_blocks(point: Point, rows: Rows, size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "block_rows", lambda *_: size)
    model, factors, blocks = point.model, point.factors, build_blocks(rows, point.model)
    assert len(blocks) == -(-len(rows.inputs) // size)
    memory = [initialize_local(model, factors, b.inputs, b.targets) for b, _ in blocks]
    provider = RowProvider(blocks)
    _, memory = provider.local_pass(model, factors, memory)
    # A second pass reads what the first one kept.
    return provider.local_pass(model, factors, memory)[0]


def test_blocks_of_any_size(point, monkeypatch):
    whole = pass_in_blocks(point, point.rows, N, monkeypatch)
    bound = elbo(point.model, point.factors, whole)
    expected = fit(point)
    for size in (1, 7, N - 1):
        cut = pass_in_blocks(point, point.rows, size, monkeypatch)
        assert_same(cut, whole, rtol=STEP)
        assert_same(elbo(point.model, point.factors, cut), bound, rtol=STEP)
    monkeypatch.setattr(module, "block_rows", lambda *_: 7)
    assert_same_fit(fit(point), expected)


def test_local_step_of_a_row_does_not_see_other_rows(point):
    def step(index: slice):
        part = take_rows(point.rows, index)
        memory = initialize_local(point.model, point.factors, part.inputs, part.targets)
        return local_step(point.model, point.factors, part.inputs, part.targets, memory)

    local, moments = step(slice(None))
    for n in (0, 11, 22):
        alone, moments_alone = step(slice(n, n + 1))
        # What all rows share has no axis of them, or one of length 1.
        row = partial(map_arrays, lambda x, n=n: x[:, n : n + 1] if x.shape[1] == N else x)
        assert_same(alone, row(local), rtol=STEP)
        assert_same(moments_alone.means, row(moments.means), rtol=STEP)


def test_weight_two_is_the_row_twice_and_weight_zero_its_absence(point):
    weights = np.arange(N) % 3 * 1.0
    repeated = take_rows(point.rows, np.repeat(np.arange(N), weights.astype(int)))
    expected = fit(replace(point, rows=replace(repeated, weights=np.ones(len(repeated.weights)))))
    # And nobody reads what a row of weight zero says.
    absent = weights[:, None] == 0.0
    targets = point.rows.targets
    if point.model.outcome.has_noise:
        targets = np.where(absent, -50.0, targets)
    rows = Rows(inputs=np.where(absent, 30.0, point.rows.inputs), targets=targets, weights=weights)
    assert_same_fit(fit(replace(point, rows=replace(point.rows, weights=weights))), expected)
    assert_same_fit(fit(replace(point, rows=rows)), expected)


def test_networks_side_by_side_are_networks_one_by_one(point):
    """The bound, every update from a generic point, the start of local factors, fits with EM.

    Fits are long enough for momentum to fail in one network and go on in the other.
    """
    bound, together = builders.bound_of(point), fit(point, LONG)
    updated = {name: update(point) for name, update in builders.UPDATES.items()}
    rows = point.rows
    memory = initialize_local(point.model, point.factors, rows.inputs, rows.targets)
    for index in range(M):
        alone = network_of(point, index)
        part = partial(map_arrays, lambda x, i=index: x[i : i + 1])
        assert_same(builders.bound_of(alone), part(bound), rtol=STEP)
        for name, update in builders.UPDATES.items():
            found, expected = update(alone), network_of(updated[name], index)
            assert_same(found.factors, expected.factors, rtol=STEP, name=name)
            assert_same(found.local, expected.local, rtol=STEP, name=name)
            # A rate that is searched for is known to the root of rounding only.
            assert_same(found.model, expected.model, rtol=FACTORS, name=name)
        found = initialize_local(alone.model, alone.factors, rows.inputs, rows.targets)
        assert_same(found, part(memory), rtol=STEP)
        ascent = fit(alone, LONG)
        expected = network_of(
            replace(point, model=together.model, factors=together.posterior), index
        )
        assert_same(ascent.elbo_history[0], together.elbo_history[index], rtol=HISTORY)
        assert_same(ascent.posterior, expected.factors, rtol=FACTORS)
        assert_same(ascent.model, expected.model, rtol=FACTORS)
        assert ascent.n_sweeps[0] == together.n_sweeps[index]
        assert ascent.status[0] is together.status[index]
