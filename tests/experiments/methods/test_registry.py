"""The list of methods: what it holds, what it says of absent libraries, what it leaves alone."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import pytest

from bowtienet.evaluation.methods import Method
from bowtienet.experiments.methods import METHODS, entry, missing

OURS = ["single", "ensemble", "svi", "svi_ensemble", "gaussian", "pruned"]
OTHERS = [
    "lasso",
    "gpr",
    "ngboost",
    "stochtree",
    "bde",
    "mean_field",
    "nuts",
    "nuts_deep",
    "horseshoe",
    "backprop",
    "deep_ensemble",
    "laplace",
]
LIBRARIES = {"ngboost", "stochtree", "bde", "jax", "numpyro", "torch", "laplace"}


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """As if `modules` were not installed."""
    real = importlib.util.find_spec

    def find_spec(name: str, *rest: Any) -> Any:
        return None if name in modules else real(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)


def test_ours_come_first_and_all_competitors_follow() -> None:
    assert list(METHODS) == OURS + OTHERS


def test_no_two_methods_look_alike_in_a_table() -> None:
    labels = [found.label for found in METHODS.values()]
    assert len(set(labels)) == len(labels)
    assert not any("|" in label or "\n" in label for label in labels)


@pytest.mark.parametrize("name", OURS + OTHERS)
def test_settings_have_a_source_of_one_sentence(name: str) -> None:
    source = METHODS[name].source
    assert source.endswith(".")
    assert "\n" not in source


@pytest.mark.parametrize("name", [*OURS, "lasso", "gpr"])
def test_what_needs_only_the_library_itself_is_never_missing(name: str) -> None:
    assert METHODS[name].modules == ()
    assert missing(name) is None


def test_all_libraries_of_competitors_are_asked_for() -> None:
    assert {module for found in METHODS.values() for module in found.modules} == LIBRARIES


@pytest.mark.parametrize("name", [name for name in OTHERS if METHODS[name].modules])
def test_an_absent_library_is_named_with_the_extra_that_brings_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, METHODS[name].modules[-1])
    reason = missing(name)
    assert reason is not None
    assert METHODS[name].modules[-1] in reason.split(":")[0]
    assert METHODS[name].label in reason
    assert "pip install 'bowtienet[bench]'" in reason


def test_every_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "jax", "numpyro")
    assert missing("nuts") == "NUTS needs jax and numpyro: pip install 'bowtienet[bench]'."


def test_a_library_that_is_there_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "laplace")
    monkeypatch.setitem(sys.modules, "torch", sys)  # no spec of its own name, and yet importable
    assert missing("laplace") == "Laplace needs laplace: pip install 'bowtienet[bench]'."


@pytest.mark.parametrize("ask", [entry, missing])
def test_an_unknown_method_brings_the_nearest(ask: Any) -> None:
    with pytest.raises(ValueError, match=r"there is no method 'laplac'; did you mean 'laplace'\?"):
        ask("laplac")


def test_the_list_of_methods_loads_none_of_their_libraries() -> None:
    code = "import sys, bowtienet.experiments.methods; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not LIBRARIES & set(done.stdout.split())


@pytest.mark.parametrize("name", OURS + OTHERS)
def test_a_method_that_is_not_missing_can_be_made(name: str) -> None:
    if (reason := missing(name)) is not None:
        pytest.skip(reason)
    assert isinstance(METHODS[name].make(hidden=(3,)), Method)


@pytest.mark.parametrize("name", ["lasso", "gpr", "ngboost", "stochtree"])
def test_methods_without_layers_do_with_any_widths(name: str) -> None:
    """And say so where a setting is not theirs, before a library is needed."""
    assert isinstance(METHODS[name].make(hidden=(3, 4)), Method)
    if name in ("gpr", "ngboost", "stochtree"):
        with pytest.raises(TypeError, match="unexpected keyword"):
            METHODS[name].make(hidden=(3,), no_such_setting=1)
