"""The examples that draw run and leave their plots."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sklearn.exceptions import ConvergenceWarning

EXAMPLES = Path(__file__).parents[2] / "examples"
PLOTS = {
    "displays": ["activation.png", "displays.png", "elbo.png", "shrinkage.png"],
    "toy_pruning": ["toy_pruning.png", "toy_weights.png"],
    "diabetes_selection": [
        "diabetes_network.png",
        "diabetes_relevance.png",
        "diabetes_slices.png",
        "diabetes_weights.png",
    ],
}


@pytest.mark.parametrize("name", PLOTS)
def test_example(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    with warnings.catch_warnings():
        # A few sweeps from one start: enough to run every line.
        warnings.simplefilter("ignore", ConvergenceWarning)
        main(tmp_path, n_starts=1, max_iter=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == PLOTS[name]
    for path in tmp_path.iterdir():
        assert plt.imread(path).std() > 0.01  # not blank
    printed = capsys.readouterr().out
    assert any(words in printed for words in ("pruned", "before -> after", "Scores("))
