"""The study of priors: planted tables, what one network keeps of them, and the report."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._old.accuracy import priors


@pytest.mark.parametrize("kind", priors.TRUTHS)
def test_four_features_matter(kind: str) -> None:
    inputs, targets = priors.planted(priors.TRUTHS[kind], 3)
    assert inputs.shape == (priors.N_ROWS, priors.N_FEATURES)
    moved = inputs.copy()
    moved[:, priors.N_RELEVANT :] = 0.0
    truth = priors.TRUTHS[kind]
    np.testing.assert_array_equal(truth(moved), truth(inputs))
    for place in range(priors.N_RELEVANT):
        moved = inputs.copy()
        moved[:, place] = 0.0
        assert np.var(truth(moved) - truth(inputs)) > 0.1
    assert np.corrcoef(targets, truth(inputs))[0, 1] > 0.9


def test_report_of_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of a fit that is too short to have shrunk: all counts are of what there is."""
    monkeypatch.setattr(priors, "MOST_SWEEPS", 2)
    monkeypatch.setattr(priors, "N_ROWS", 40)
    monkeypatch.setattr(priors, "N_UNITS", 3)
    *counts, done = priors.structure("horseshoe", "bends", 0)
    assert done == 0.0
    assert counts[0] <= 3 * 4
    assert counts[1] <= 3 * 16
    assert counts[2] <= min(counts[0], 4)
    assert counts[3] <= min(counts[1], 16)
    text = priors.structure_report(["horseshoe", "gaussian"], [0, 1], n_jobs=1)
    assert text.count("| horseshoe |") == text.count("| gaussian |") == len(priors.TRUTHS)
    assert "0 of 2" in text
