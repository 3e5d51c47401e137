"""What a release is made of agrees: version, metadata, conda recipe, workflows, citation, paper."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from trove_classifiers import classifiers

import bowtienet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
"""Of packages that conda calls otherwise: this one has no graphical interface."""


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


# Version and metadata


def test_the_version_is_that_of_pyproject_wherever_it_is_said() -> None:
    version = PROJECT["version"]
    assert bowtienet.__version__ == version
    assert loaded(ROOT / "CITATION.cff")["version"] == version
    assert loaded(ROOT / "conda" / "recipe.yaml")["context"]["version"] == version
    said = re.findall(r"__version__\s*=", "".join(map(Path.read_text, ROOT.glob("src/**/*.py"))))
    assert said == []


def test_classifiers_are_known_and_name_the_versions_that_are_tested() -> None:
    assert set(PROJECT["classifiers"]) <= classifiers
    assert PROJECT["classifiers"] == sorted(PROJECT["classifiers"])
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={named[0]}"
    tested = loaded(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["test"]["strategy"]
    assert tested["matrix"]["python"] == named


def test_the_sdist_names_folders_that_there_are() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    for name in settings["targets"]["sdist"]["include"]:
        assert (ROOT / name.removeprefix("/")).exists(), name


# The conda recipe


def conda_requirements(names: list[str]) -> set[str]:
    """Requirements of pyproject as conda writes them: a space before the bound."""
    parted = [re.fullmatch(r"([\w-]+)(>=.+)", name) for name in names]
    assert all(parted)
    return {f"{CONDA_NAMES.get(one[1], one[1])} {one[2]}" for one in parted if one}


def test_the_recipe_needs_what_the_wheel_and_its_command_line_need() -> None:
    recipe = loaded(ROOT / "conda" / "recipe.yaml")
    asked = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["cli"]
    python = "python >=${{ python_min }}"
    assert set(recipe["requirements"]["run"]) == conda_requirements(asked) | {python}
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert conda_requirements(build) <= set(recipe["requirements"]["host"])


def test_the_recipe_says_of_the_package_what_pyproject_says() -> None:
    recipe = loaded(ROOT / "conda" / "recipe.yaml")
    assert recipe["package"]["name"] == PROJECT["name"]
    [(command, place)] = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [f"{command} = {place}"]
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert [about["license_file"]] == PROJECT["license-files"]
    for test in recipe["tests"]:
        for name in test.get("files", {}).get("source", []):
            assert (ROOT / name).is_file()


# Workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_of_a_workflow_have_steps_and_wait_for_jobs_that_there_are(path: Path) -> None:
    workflow = loaded(path)
    assert workflow[True]  # YAML reads `on` as a truth value
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["runs-on"], name
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), (name, step)
            assert "secrets." not in str(step)
            if "uses" in step:
                assert re.fullmatch(r"[\w.-]+/[\w.-]+@[\w./-]+", step["uses"]), step


def test_workflows_run_targets_and_files_that_there_are() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    jobs = [job for path in WORKFLOWS for job in loaded(path)["jobs"].values()]
    lines = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    made = {line.removeprefix("make ") for line in lines if line.startswith("make ")}
    assert made == {"dist", "docs", "test"}
    assert made <= targets
    assert ".ci/run" in lines
    for script in ("run", "dist"):
        assert (ROOT / ".ci" / script).stat().st_mode & 0o111


def test_publishing_is_by_trust_and_of_what_was_built() -> None:
    jobs = loaded(ROOT / ".github" / "workflows" / "publish.yml")["jobs"]
    assert set(jobs) == {"build", "publish"}
    publish = jobs["publish"]
    assert publish["needs"] == "build"
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "pypi"
    uploaded = [step["with"] for step in jobs["build"]["steps"] if "upload" in str(step)]
    taken = [step["with"] for step in publish["steps"] if "download" in str(step)]
    assert [one["name"] for one in uploaded] == [one["name"] for one in taken] == ["dist"]


# Citation and paper


def test_the_citation_is_complete() -> None:
    citation = loaded(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "type"} <= set(citation)
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    assert all("name" in author or "family-names" in author for author in citation["authors"])
    article = citation["preferred-citation"]
    assert article["doi"] in (ROOT / "paper" / "paper.bib").read_text()


def test_the_paper_has_what_the_journal_asks_for_and_its_numbers_are_those_of_the_pages() -> None:
    text = (ROOT / "paper" / "paper.md").read_text()
    _, head, body = text.split("---\n", 2)
    front = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(front)
    for title in ("Summary", "Statement of need", "References"):
        assert f"# {title}\n" in body
    renewed = runpy.run_path(str(ROOT / "paper" / "renew_tables.py"))["renewed"]
    assert renewed(text) == text, "make paper renews the tables"
    # No figure with decimals but in the parts that come from pages.
    own = re.sub(r"<!-- from .*?<!-- end -->", "", body, flags=re.DOTALL)
    assert re.findall(r"\d\.\d", own) == []


def test_references_and_figures_of_the_paper_are_there() -> None:
    text = (ROOT / "paper" / "paper.md").read_text().split("---\n", 2)[2]
    entries = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(), re.MULTILINE)
    assert len(entries) == len(set(entries))
    assert set(re.findall(r"@([a-z]+\d{4})", text)) == set(entries)
    figures = re.findall(r"\]\((\.\./\S+\.png)\)", text)
    assert len(figures) == 2
    for figure in figures:
        assert (ROOT / "paper" / figure).is_file()
