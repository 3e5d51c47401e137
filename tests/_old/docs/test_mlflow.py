"""The code of docs/guide/mlflow.md, where MLflow is installed.

It is in no group of pyproject.toml: even its small form brings eighteen packages along, and holds
one of ours back.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests._old.docs.pages import DOCS, blocks, lay_out_files


@pytest.mark.filterwarnings("ignore")  # those of another library
def test_a_logged_model_answers_with_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    lay_out_files(tmp_path)
    page = DOCS / "guide" / "mlflow.md"
    code, printed = list(blocks(page))
    exec(compile(code.text, str(page), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines()[-1] == printed.text.strip()
