"""The wheel holds the package alone, and runs the README's example in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"bowtienet"}


def run(*command: str | os.PathLike[str], folder: Path) -> str:
    """What a command prints; it sees neither this checkout nor the tests' own settings."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    found = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation"),
        *("--outdir", folder, ROOT),
        folder=folder,
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.process
def test_importing_the_package_imports_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, bowtienet; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    found = set(run(sys.executable, "-c", code, folder=tmp_path).split())
    assert "bowtienet" in found
    assert not found & {"numpy", "scipy", "sklearn", "narwhals", "pandas", "pyarrow", "matplotlib"}


@pytest.mark.process
def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == PACKAGES
    assert "bowtienet/py.typed" in names
    assert any(name.endswith("report.html") for name in names)


@pytest.mark.process
def test_the_wheel_runs_the_example_of_the_readme(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", home, folder=tmp_path)
    python = home / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=home)
    # The libraries it needs are those of this environment; a folder that is named in a .pth file
    # has its packages seen, but not the editable install of this checkout.
    (Path(site.strip()) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install"),
        *("--no-deps", "--no-index", "--quiet", wheel),
        folder=tmp_path,
    )
    where = run(python, "-c", "import bowtienet; print(bowtienet.__file__)", folder=tmp_path)
    assert where.startswith(str(home))
    assert run(home / "bin" / "bowtienet", "--version", folder=tmp_path).strip()
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert example is not None
    (tmp_path / "example.py").write_text(example.group(1))
    assert len(run(python, "example.py", folder=tmp_path).splitlines()) == 4
