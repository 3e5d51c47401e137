"""The example of the README runs and prints what the README says it prints."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"
TOLERANCE = 0.1
"""Libraries of linear algebra round differently, and 200 sweeps carry that on."""


def numbers(text: str) -> list[float]:
    return [float(found) for found in re.findall(r"-?\d+\.?\d*", text.replace("+-", " "))]


def test_example_prints_what_the_readme_says(capsys):
    text = README.read_text()
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)
    expected = re.search(r"```text\n(.*?)```", text, flags=re.DOTALL).group(1)
    exec(compile(code, str(README), "exec"), {})
    printed = capsys.readouterr().out
    assert printed.split()[:2] == expected.split()[:2]
    np.testing.assert_allclose(numbers(printed), numbers(expected), atol=TOLERANCE)
