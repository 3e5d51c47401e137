"""The code of the documentation runs, page by page, and prints what the page says it prints."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from bowtienet._old import BowTieRegressor, FitOptions
from tests._old.cli.conftest import TINY
from tests._old.docs.pages import DOCS, blocks, lay_out_files, names_in_sight, pages

ELSEWHERE = {
    DOCS / "guide" / "commandline.md": "tests/_old/cli/test_commands.py",
    DOCS / "guide" / "mlflow.md": "tests/_old/docs/test_mlflow.py", DOCS / "guide" / "paper.md": "tests/test_docs.py",
}
"""Pages whose code another test runs, and which."""
DEFAULTS = {
    DOCS / name
    for name in (
        "index.md",
        "getting_started.md",
        "guide/bigdata.md",
        "guide/evaluation.md",
        "guide/selection.md",
    )
}
"""Pages that fit with the defaults, which take their time: they run with smaller ones, and what
they print is not compared."""
OTHERS = {DOCS / "guide" / "libraries.md"}
"""Pages that import libraries which warn of themselves."""
SMALL = {
    "n_estimators": 1,
    "max_iter": 3,
    "n_jobs": None,
    "options": FitOptions(weighting="equal"),
}
WITH_CODE = [
    path
    for path in pages()
    if path not in ELSEWHERE and any(block.language == "python" for block in blocks(path))
]
NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lay_out_files(tmp_path)
    return tmp_path


@pytest.fixture
def small_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    start = BowTieRegressor.__init__
    monkeypatch.setattr(start, "__kwdefaults__", {**start.__kwdefaults__, **SMALL})
    monkeypatch.setattr(start, "__defaults__", ((5,),))


def name_of(path: Path) -> str:
    return str(path.relative_to(DOCS))


def assert_alike(printed: str, expected: str, where: str) -> None:
    """Same words, and numbers that differ by no more than other machines would make them."""
    words, wanted = (
        re.sub(r"([][])", r" \1 ", NUMBER.sub("#", text)).split() for text in (printed, expected)
    )
    assert words == wanted, where
    ours, theirs = (np.array(NUMBER.findall(text), dtype=float) for text in (printed, expected))
    np.testing.assert_allclose(ours, theirs, rtol=0.1, atol=0.1, err_msg=where)


@pytest.mark.parametrize("path", WITH_CODE, ids=name_of)
def test_code_of_the_page_runs(path, folder, request, capsys):
    compared = path not in DEFAULTS
    if not compared:
        request.getfixturevalue("small_defaults")
    space, printed = {"__name__": "page", **names_in_sight()}, None
    for block in blocks(path):
        where = f"{name_of(path)}, line {block.line}"
        if block.language == "python" and block.is_run:
            code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
            with warnings.catch_warnings():
                if path in OTHERS:
                    warnings.simplefilter("ignore")
                    warnings.filterwarnings("error", module="bowtienet")
                if not compared:
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    warnings.filterwarnings("ignore", message="nothing is sure enough")
                exec(code, space)
            printed = capsys.readouterr().out
        elif block.language == "text" and printed is not None and compared:
            assert_alike(printed, block.text, where)
        else:
            printed = None
    plt.close("all")


@pytest.mark.parametrize(("name", "n_commands"), [("getting_started.md", 4), ("../README.md", 3)])
def test_commands_run(name, n_commands, folder):
    from bowtienet._old.cli.app import app

    path = DOCS / name
    lines = [
        line
        for block in blocks(path)
        if block.language == "sh"
        for line in block.text.splitlines()
        if line.startswith("bowtienet ")
    ]
    assert len(lines) == n_commands
    for line in lines:
        arguments = shlex.split(line, comments=True)[1:]
        settings = TINY if arguments[0] in ("fit", "compare") else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = CliRunner().invoke(app, [*arguments, *settings], catch_exceptions=False)
        assert result.exit_code == 0, (line, result.output)
    assert (folder / "predictions.csv").read_text().count("\n") == 61
    assert "</html>" in (folder / "report.html").read_text()


def test_first_output_of_getting_started_is_that_of_the_readme():
    """Whose test runs it with the defaults."""

    def first_outputs(path: Path) -> list[str]:
        return [block.text for block in blocks(path) if block.language == "text"]

    readme = first_outputs(DOCS.parent / "README.md")[0]
    assert first_outputs(DOCS / "getting_started.md")[0] == readme


def test_pages_with_defaults_and_elsewhere_are_there():
    assert set(WITH_CODE) >= DEFAULTS
    for path, test in ELSEWHERE.items():
        assert path.is_file()
        assert path.name in (DOCS.parent / test).read_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\na\n```\n", (1, True, "a\n", 2)),
        ("x\n\n<!-- not run: slow -->\n\n```python\na\n```\n", (1, False, "a\n", 6)),
        ("<!-- not run: slow -->\n```python\na\n```\n", (1, False, "a\n", 3)),
        ("<!-- not run: -->\n\n```python\na\n```\n", (1, True, "a\n", 4)),
    ],
)
def test_blocks_are_found(text, expected, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(text)
    found = list(blocks(path))
    assert (len(found), found[0].is_run, found[0].text, found[0].line) == expected


def test_few_blocks_are_not_run():
    skipped = [
        (name_of(path), block.line)
        for path in pages()
        for block in blocks(path)
        if block.language == "python" and not block.is_run
    ]
    assert len(skipped) <= 3, skipped


@pytest.mark.parametrize("printed", ["a 1.0 b", "a 2.5 c", "a 2.5 b 1"])
def test_another_output_is_noticed(printed):
    assert_alike("a 2.55 b", "a 2.5 b", "")
    with pytest.raises(AssertionError):
        assert_alike(printed, "a 2.5 b", "")
