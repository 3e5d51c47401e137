"""A fit gives the same bound on every array library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bowtienet.data.rows import build_rows
from bowtienet.inference.coordinate_ascent import fit
from bowtienet.posterior.initialize import initialize
from tests import builders


def history(library: Any, hidden: tuple[int, ...]) -> np.ndarray:
    """Bounds of a short fit from the same start with arrays of `library`."""
    rng = np.random.default_rng(3)
    model = builders.fixed_model(hidden, temperature=0.3)
    rows = builders.random_rows(rng, model, 12)
    arrays = (library.asarray(x) for x in (rows.inputs, rows.targets, rows.weights))
    factors = initialize(model, rows := build_rows(*arrays), rng, scheme="laplace")
    return np.asarray(fit(model, rows, factors, max_sweeps=4, tolerance=0.0).elbo_history)


@pytest.mark.parametrize("name", ["jax.numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("hidden", [(), (4, 3)])
def test_fit(name: str, hidden: tuple[int, ...]) -> None:
    library = pytest.importorskip(name)
    np.testing.assert_allclose(history(library, hidden), history(np, hidden), rtol=1e-9)
