"""The code of the new pages runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:the false discovery rate")
@pytest.mark.parametrize("name", ["guide/paper.md"])
def test_code_of_a_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    text = (DOCS / name).read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    # Fewer sweeps: every line runs, which is what this test asks for.
    code = code.replace("max_iter=3000", "max_iter=60").replace("max_iter=300", "max_iter=30")
    exec(compile(code, name, "exec"), {})
    pyplot.close("all")
    assert pyplot.imread(tmp_path / "paper_steps.png").std() > 0.01


def test_code_of_big_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "guide/bigdata.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(code, "bigdata.md", "exec"), names)
    assert names["fares"].shape == (1_500,)
