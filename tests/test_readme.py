"""The examples of the README run, in order, and print what it says they print."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
TOLERANCE = 0.4
"""Libraries of linear algebra round differently, and a network's start carries that on."""


def numbers(text: str) -> np.ndarray:
    """Mean, deviation and interval of each line."""
    lines = [line.replace("+-", " ").replace("90 %:", " ") for line in text.strip().splitlines()]
    return np.array([[float(n) for n in re.findall(r"-?\d+\.\d+", line)] for line in lines])


def code_with(name: str) -> str:
    """The example that imports a class."""
    [code] = [
        block
        for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
        if re.search(rf"import {name}\b", block)
    ]
    return code


def test_the_paper_network(capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, object] = {}
    with pytest.warns(ConvergenceWarning, match="200 iterations"):
        exec(compile(code_with("BowTieNetwork"), "README.md", "exec"), scope)
    truth = np.array([0.225 - 10.0 * np.sin(1.5), 0.0, 0.225 + 10.0 * np.sin(1.5)])
    np.testing.assert_allclose(scope["mean"], truth, atol=0.6)
    assert np.all((np.asarray(scope["std"]) > 0.5) & (np.asarray(scope["std"]) < 1.2))
    assert "evidence lower bound" in capsys.readouterr().out


def test_prediction_on_tables(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code_with("BowTieRegressor"), "README.md", "exec"), {})
    printed = numbers(capsys.readouterr().out)
    expected = numbers(re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)[0])
    assert printed.shape == expected.shape == (4, 4)
    np.testing.assert_allclose(printed[:3], expected[:3], atol=TOLERANCE)
    # Far outside the data the number itself means little: that it is larger is the point.
    for rows in (printed, expected):
        assert rows[3, 1] > 3.0 * rows[:3, 1].max()
