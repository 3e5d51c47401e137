"""The example of the README runs and prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[2] / "README.md"
TOLERANCE = 0.4
"""Libraries of linear algebra round differently, and a network's start carries that on: other seeds
move the first three rows by up to 0.2."""


def numbers(text: str) -> np.ndarray:
    """Mean, deviation and interval of each line."""
    lines = [line.replace("+-", " ").replace("90 %:", " ") for line in text.strip().splitlines()]
    return np.array([[float(n) for n in re.findall(r"-?\d+\.\d+", line)] for line in lines])


def test_example_prints_what_the_readme_says(capsys):
    text = README.read_text()
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)
    expected = numbers(re.search(r"```text\n(.*?)```", text, flags=re.DOTALL).group(1))
    exec(compile(code, str(README), "exec"), {})
    printed = numbers(capsys.readouterr().out)
    assert printed.shape == expected.shape == (4, 4)
    np.testing.assert_allclose(printed[:3], expected[:3], atol=TOLERANCE)
    # Far outside the data the number itself means little: that it is larger is the point.
    for found in (printed, expected):
        assert found[3, 1] > 3.0 * found[:3, 1].max()
