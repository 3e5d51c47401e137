"""Principal components: orthogonal up to one scale, nothing lost, signs, and their columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bowtienet._old.ensemble.sparsity import _strength_of_columns
from bowtienet._old.inference.start import fit_networks, network_outputs, random_networks
from bowtienet._old.posterior.factors import GlobalFactors
from bowtienet._old.posterior.relevance import path_strength
from bowtienet._old.representation.principal import (
    Principal,
    fit_principal,
    principal_components,
)
from bowtienet._old.representation.representation import (
    PLAIN,
    Representation,
    View,
    check_representation,
    input_names,
    network_features,
    network_inputs,
)
from bowtienet._old.representation.scaling import Scaling
from tests._old import builders
from tests._old.representation.tables import learn


def correlated(n: int, n_columns: int, rank: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n_columns))
    return (x - x.mean(axis=0)) / x.std(axis=0)


@pytest.mark.parametrize(("n", "n_columns"), [(60, 8), (20, 50)], ids=["tall", "wide"])
def test_directions_are_orthogonal_up_to_one_scale(n: int, n_columns: int) -> None:
    x = correlated(n, n_columns, 6)
    found = fit_principal(x, np.ones(n), 4)
    gram = found.loadings.T @ found.loadings
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(4), atol=1e-10)
    seen = principal_components(found, x)
    # Mean square one over all of them, in falling order, and not correlated.
    assert np.mean(seen**2) == pytest.approx(1.0)
    covariance = seen.T @ seen / n
    assert np.all(np.diff(np.diag(covariance)) <= 1e-10)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)
    values = np.linalg.svd(x)[1][:4] ** 2
    np.testing.assert_allclose(
        np.diag(covariance) / covariance[0, 0], values / values[0], rtol=1e-9
    )


def test_tall_and_wide_tables_have_the_same_directions() -> None:
    """Whichever of the two products is the smaller: rows of weight zero only fill up."""
    x = correlated(20, 30, 6)
    padded, weights = np.vstack([x, np.ones((20, 30))]), np.repeat([1.0, 0.0], 20)
    wide, tall = fit_principal(x, np.ones(20), 6), fit_principal(padded, weights, 6)
    np.testing.assert_allclose(wide.loadings, tall.loadings, atol=1e-9)


def test_no_more_components_than_directions() -> None:
    assert fit_principal(correlated(40, 12, 3), np.ones(40), 10).loadings.shape == (12, 3)
    assert fit_principal(correlated(6, 30, 20), np.ones(6), 10).loadings.shape == (30, 5)


def test_the_largest_loading_is_positive() -> None:
    for n, n_columns in ((60, 8), (20, 50)):
        loadings = fit_principal(correlated(n, n_columns, 6), np.ones(n), 6).loadings
        largest = np.argmax(np.abs(loadings), axis=0)
        assert np.all(loadings[largest, np.arange(6)] > 0.0)
        mirrored = fit_principal(-correlated(n, n_columns, 6), np.ones(n), 6).loadings
        np.testing.assert_allclose(mirrored, loadings, atol=1e-8)


def test_a_weight_of_two_is_a_row_that_comes_twice() -> None:
    x, counts = correlated(30, 5, 5), np.arange(30) % 3
    weighted = fit_principal(x, counts.astype(float), 5)
    repeated = fit_principal(np.repeat(x, counts, axis=0), np.ones(counts.sum()), 5)
    np.testing.assert_allclose(weighted.loadings, repeated.loadings, atol=1e-9)


@pytest.mark.parametrize(("n", "n_columns", "rank"), [(40, 6, 6), (15, 40, 20), (40, 12, 3)])
def test_linear_functions_of_the_columns_are_kept(n: int, n_columns: int, rank: int) -> None:
    """With as many components as directions: any linear function of rows is one of components."""
    x = correlated(n, n_columns, rank)
    seen = principal_components(fit_principal(x, np.ones(n), n_columns), x)
    values = x @ np.random.default_rng(1).normal(size=(n_columns, 3))
    coefficients = np.linalg.lstsq(seen, values, rcond=None)[0]
    np.testing.assert_allclose(seen @ coefficients, values, atol=1e-8)


def test_a_network_on_rotated_inputs_is_the_same_function() -> None:
    """With weights turned like the inputs, and a penalty in their scale, training is the same."""
    x = correlated(40, 6, 6)
    principal = fit_principal(x, np.ones(40), 6)
    seen = principal_components(principal, x)
    scale = np.sqrt((principal.loadings.T @ principal.loadings)[0, 0])
    targets = np.sin(x[:, :1]) + x[:, 1:2]
    weights, rng = np.ones((1, 40)), np.random.default_rng(2)
    networks = random_networks((5,), x, targets, weights, rng)
    first = networks.layers[0]
    # W'x = (V'W)'(V'x), with V'x = seen / scale.
    inner = first[..., 1:] @ principal.loadings
    turned = np.concatenate([first[..., :1], inner / scale**2], axis=2)
    rotated = replace(networks, layers=(turned, *networks.layers[1:]))
    np.testing.assert_allclose(
        network_outputs(rotated, seen), network_outputs(networks, x), atol=1e-4
    )
    unit = seen / scale
    in_unit = np.concatenate([first[..., :1], inner / scale], axis=2)
    start = replace(networks, layers=(in_unit, *networks.layers[1:]))
    ends = [
        network_outputs(fit_networks(own, targets, weights, begin, np.ones(1), lengths=[5])[0], own)
        for own, begin in ((x, networks), (unit, start))
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=2e-3)


@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)], ids=str)
def test_relevance_through_components_that_are_columns(hidden: tuple[int, ...]) -> None:
    """Loadings that are a permutation: the columns have what the inputs have, in their places."""
    model = builders.fixed_model(hidden)
    factors: GlobalFactors = builders.random_factors(np.random.default_rng(3), model)
    connections = tuple(
        np.random.default_rng(4).random(size=layer.weights.mean[:, 1:].shape) < 0.8
        for layer in factors.layers
    )
    connections = (np.ones_like(connections[0]), *connections[1:])
    order = np.array([2, 0, 1])
    found = _strength_of_columns(factors, connections, np.eye(3)[:, order])
    np.testing.assert_allclose(found[order], path_strength(factors, connections), rtol=1e-9)


@pytest.mark.parametrize("name", ["torch", "array_api_strict"])
def test_components_of_other_libraries(name: str) -> None:
    library = pytest.importorskip(name)
    x = correlated(10, 4, 4)
    principal = fit_principal(x, np.ones(10), 3)
    found = principal_components(principal, library.asarray(x))
    assert type(found) is type(library.asarray(x))
    np.testing.assert_allclose(np.asarray(found), principal_components(principal, x), rtol=1e-12)


# In a representation


GOOD = fit_principal(correlated(30, 3, 3), np.ones(30), 2)
SEEN = Representation(
    columns=learn(np.random.default_rng(0).normal(size=(6, 3))),
    feature_scaling=Scaling(center=np.zeros(3), scale=np.ones(3)),
    target_scaling=Scaling(center=np.zeros(1), scale=np.ones(1)),
    column_order=np.array([2, 0, 1]),
    views=(PLAIN, View(principal=GOOD)),
)


def test_a_view_of_components() -> None:
    check_representation(SEEN, 3, 1)
    view = SEEN.views[1]
    assert len(network_inputs(SEEN, view)) == 2
    assert input_names(SEEN, view) == ["component 1", "component 2"]
    x = np.random.default_rng(1).normal(size=(5, 3))
    np.testing.assert_array_equal(network_features(view, x), x @ GOOD.loadings)


@pytest.mark.parametrize("loadings", [GOOD.loadings[:2], GOOD.loadings[:, :0], GOOD.loadings[:, 0]])
def test_components_that_do_not_fit(loadings: np.ndarray) -> None:
    views = (View(principal=Principal(loadings=loadings)),)
    with pytest.raises(ValueError, match="of other columns"):
        check_representation(replace(SEEN, views=views), 3, 1)
