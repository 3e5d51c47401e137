"""The threat model: what SECURITY.md says, and that each of its sentences has a test."""

from __future__ import annotations

import ast
import html
import os
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bowtienet._old import BowTieRegressor, load, persistence
from bowtienet._old.cli.console import printable
from bowtienet._old.data.files import read_table
from tests._old.estimators.models import rows, small

ROOT = Path(__file__).parents[2]
HOSTILE = {
    "html": "<script>document.title='owned'</script>",
    "attribute": '" onmouseover="alert(1)" x="',
    "terminal": "\x1b]0;owned\x07\x1b[2J\x9b31mred",
    "right to left": "safe\u202egnp.exe",
    "path": "../../../../tmp/owned",
    "shell": "$(touch owned); `touch owned` | touch owned",
    "template": "{{7*7}} {% include 'x' %} %(x)s {0.__class__}",
    "formula": '=HYPERLINK("http://example.org")',
}
X, Y = rows(40, seed=500)
RNG = np.random.default_rng(500)


SHOWN = [HOSTILE[kind] for kind in ("html", "attribute", "terminal", "template")]
TABLE = pd.DataFrame({name: RNG.normal(size=40) for name in SHOWN}).assign(
    kind=np.array(list(HOSTILE.values()))[np.arange(40) % len(HOSTILE)]
)


@pytest.fixture(scope="module")
def model() -> BowTieRegressor:
    """Of a table whose names and categories are hostile."""
    return small(max_iter=2, n_estimators=1, features="standard").fit(
        TABLE, pd.Series(Y, name=HOSTILE["path"])
    )


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


# Model files


class Payload:
    """Runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.marker),)


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    """The same bytes do run a command when pickle reads them: the bait works."""
    marker, path = tmp_path / "owned", tmp_path / "model"
    data = pickle.dumps(Payload(marker))
    opening = b'{"__metadata__":{"bowtienet":'
    for content in (data, len(data).to_bytes(8, "little") + opening + data):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="model"):
            load(path)
        assert persistence.kind_of(path) is None
        assert not marker.exists()
    pickle.loads(data)
    assert marker.exists()


def test_loading_imports_no_pickle_and_no_network() -> None:
    """No module that the files of a model go through names them."""
    for file in (ROOT / "src/bowtienet/_old/persistence").glob("*.py"):
        names = {
            alias.name.partition(".")[0]
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in (
                node.names if isinstance(node, ast.Import) else [ast.alias(name=node.module or "")]
            )
        }
        assert not names & {"pickle", "joblib", "dill", "marshal", "shelve", "socket", "urllib"}
        assert not re.search(r"\b(eval|exec|__import__)\(", file.read_text(encoding="utf-8"))


def test_what_a_hostile_model_says_is_text(model: BowTieRegressor, tmp_path: Path) -> None:
    """Names go through a file as they are, and make no file of their own."""
    before = set(tmp_path.parent.rglob("*"))
    path = tmp_path / "model"
    model.save(path)
    found = load(path)
    assert found.feature_names_in_.tolist() == [*SHOWN, "kind"]
    assert set(tmp_path.parent.rglob("*")) - before == {path}


# Tables and names


class Tags(HTMLParser):
    """The tags of a page, and the attributes that run code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts.append(data)


def test_a_report_of_hostile_names_runs_nothing(model: BowTieRegressor, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    path = tmp_path / "report.html"
    model.report(TABLE, Y, path)
    text = path.read_text(encoding="utf-8")
    tags = Tags(text)
    assert not any("document.title='owned'" in script for script in tags.scripts)
    assert tags.handlers == []
    assert "<script>document" not in text
    assert HOSTILE["template"] in html.unescape(text)
    assert list(tmp_path.iterdir()) == [path]


def test_the_html_of_a_notebook_is_escaped(model: BowTieRegressor) -> None:
    text = model._repr_html_()
    assert "<script>document" not in text
    assert 'onmouseover="alert' not in text


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_terminal_obeys_no_name(kind: str) -> None:
    """Control characters, of both sets, and those that turn the direction of writing are spelt."""
    shown = printable(HOSTILE[kind])
    assert all(c.isprintable() for c in shown)
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "\u202e" not in shown


def test_errors_quote_names(model: BowTieRegressor) -> None:
    """A message of the library itself, too, has names as Python writes them."""
    table = TABLE.assign(**{HOSTILE["terminal"]: np.inf})
    with pytest.raises(ValueError, match="infinity") as caught:
        model.predict(table)
    assert "\x1b" not in str(caught.value)


@pytest.mark.process
def test_a_shell_sees_no_name(tmp_path: Path) -> None:
    """The command line with names that a shell would run."""
    table = pd.DataFrame({HOSTILE["shell"]: X[:, 0], HOSTILE["path"]: X[:, 1], "y": Y})
    table.to_csv(tmp_path / "data.csv", index=False)
    arguments = ["fit", "data.csv", "-t", "y", "-o", "model.btn", "--effort", "fast"]
    done = subprocess.run(
        [sys.executable, "-m", "bowtienet", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "model.btn"}


def test_an_archive_is_not_unpacked(tmp_path: Path) -> None:
    """A zip file, whose members may have names such as ../owned, is refused as it is."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"PK\x03\x04" + b"../owned" * 20)
    with pytest.raises(ValueError, match="archive"):
        read_table(path)
    assert list(tmp_path.iterdir()) == [path]
