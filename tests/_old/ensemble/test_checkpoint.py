"""Checkpoints: what is finished is not repeated, and a resumed fit ends in the same bits."""

from __future__ import annotations

import errno
import os
import re
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from bowtienet._old import persistence
from bowtienet._old.ensemble import fit_ensemble
from bowtienet._old.ensemble.checkpoint import KIND, Checkpoint, digest
from bowtienet._old.ensemble.settings import Settings
from tests._old.ensemble.fits import (
    PowerCutError,
    Watching,
    assert_same_ensemble,
    bent_table,
    cut_in,
    fit,
    small,
)

X, Y = bent_table()
HALVES = [(X[:30], Y[:30]), (X[30:], Y[30:])]
KINDS: dict[str, tuple[Settings, Callable[[], Any]]] = {
    "memory": (small(weighting="equal", n_estimators=7), lambda: (X, Y)),
    "stream": (small(solver="svi"), lambda: (HALVES,)),
    "stream with momentum": (
        small(solver="svi", batch_size=1000, weighting="elbo"),
        lambda: (X, Y),
    ),
    "coordinate ascent on a stream": (small(solver="cavi", weighting="equal"), lambda: (HALVES,)),
    "coordinate ascent, sample first": (small(solver="cavi"), lambda: (HALVES,)),
}
SETTINGS, _ = KINDS["memory"]
STREAMED, _ = KINDS["stream"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fit.checkpoint"


def cut_fit(path: Path, member: int, sweep: int = 1, kind: str = "memory") -> None:
    settings, rows = KINDS[kind]
    with pytest.raises(PowerCutError):
        fit(rows(), settings, cut_in(member, sweep), path=path)


@pytest.fixture
def begun(path: Path) -> Path:
    """Of a fit that was cut short in its third member."""
    cut_fit(path, 3)
    return path


def saves(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is written from now on."""
    seen: list[Any] = []
    genuine = persistence.save

    def spy(path: Any, kind: str, content: Any) -> None:
        seen.append(content)
        genuine(path, kind, content)

    monkeypatch.setattr(persistence, "save", spy)
    return seen


# Written at natural joints


def test_written_after_each_task(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the beginning, and after each of seven members."""
    seen = saves(monkeypatch)
    fit((X, Y), SETTINGS, path=path)
    assert [len(content["outcomes"]) for content in seen] == list(range(8))
    assert all(content["under way"] is None for content in seen)


def test_written_after_each_pass_of_a_stream(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = saves(monkeypatch)
    fit((HALVES,), STREAMED, path=path)
    passes = [
        (len(content["outcomes"]), content["under way"] and content["under way"].position.n_passes)
        for content in seen
    ]
    assert passes == [(0, None), (0, 1), (0, 2), (0, 3), (0, 4), (1, None),
                      (1, 1), (1, 2), (1, 3), (1, 4), (2, None)]  # fmt: skip


def test_what_ctrl_c_cut_short_is_not_finished(path: Path) -> None:
    found = fit((X, Y), SETTINGS, cut_in(7, 1, KeyboardInterrupt), path=path)
    assert found.interrupted
    assert len(persistence.load(path, KIND)["outcomes"]) == 6
    again = fit((X, Y), SETTINGS, path=path, resume=True)
    assert_same_ensemble(again.ensemble, fit((X, Y), SETTINGS).ensemble)


# The same end


@pytest.mark.parametrize(
    ("kind", "member", "sweep"),
    [
        *[("memory", member, 2) for member in (2, 5, 6, 7)],
        *[("stream", member, sweep) for member in (1, 2) for sweep in (4, 6)],
        *[("stream with momentum", member, 3) for member in (1, 2)],
        ("coordinate ascent on a stream", 2, 2),
        ("coordinate ascent, sample first", 2, 1),
    ],
)
def test_the_end_has_the_same_bits(
    kind: str, member: int, sweep: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit_ensemble, "LARGE", 40 if "coordinate ascent" in kind else 50_000)
    settings, rows = KINDS[kind]
    whole = Watching()
    expected = fit(rows(), settings, whole)
    cut_fit(path, member, sweep, kind)
    watch = Watching()
    found = fit(rows(), settings, watch, path=path, resume=True)
    assert_same_ensemble(found.ensemble, expected.ensemble)
    assert found.solver == expected.solver
    # What was finished is told of, and not repeated; of a stream nor are whole passes.
    assert len(watch.bounds) == member - 1
    assert watch.n_members == whole.n_members - (member - 1)
    saved = {"stream": 3, "stream with momentum": 2}.get(kind, 0)
    if saved:
        assert watch.n_sweeps == whole.n_sweeps // 2 * (3 - member) - saved


def test_a_complete_fit_is_not_fitted_again(path: Path) -> None:
    expected = fit((X, Y), SETTINGS, path=path)
    before = path.read_bytes()
    watch = Watching()
    found = fit((X, Y), SETTINGS, watch, path=path, resume=True)
    assert_same_ensemble(found.ensemble, expected.ensemble)
    assert (watch.n_members, len(watch.bounds)) == (0, 7)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["memory", "stream"])
def test_resumed_by_several_jobs(kind: str, path: Path) -> None:
    settings, rows = KINDS[kind]
    expected = fit(rows(), settings)
    cut_fit(path, 2, 4, kind)
    with joblib.parallel_config(backend="threading"):
        found = fit(rows(), replace(settings, n_jobs=2), path=path, resume=True)
    assert_same_ensemble(found.ensemble, expected.ensemble)


def test_the_seed_is_that_of_the_file(begun: Path) -> None:
    assert Checkpoint(begun, 123, resume=True).seed == 7
    assert Checkpoint(begun, 123, resume=False).seed == 123


def test_a_fit_that_goes_on_is_resumed_with_its_members(path: Path) -> None:
    before = fit((X, Y), SETTINGS).ensemble
    expected = fit((X, Y), SETTINGS, before=before)
    with pytest.raises(PowerCutError):
        fit((X, Y), SETTINGS, cut_in(2, 1), path=path, before=before)
    assert Checkpoint(path, 0, resume=True).goes_on
    found = fit((X, Y), SETTINGS, path=path, resume=True, before=before)
    assert_same_ensemble(found.ensemble, expected.ensemble)
    other = replace(before, members=before.members[::-1])
    for changes in ({}, {"before": other}):
        with pytest.raises(ValueError, match="members before"):
            fit((X, Y), SETTINGS, path=path, resume=True, **changes)


# Another fit

CHANGES: dict[str, Any] = {
    "hidden_layer_sizes": (6,), "prior": "laplace", "max_iter": 5, "tol": 1e-3,
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_other_settings(name: str, begun: Path) -> None:
    before = begun.read_bytes()
    with pytest.raises(ValueError, match=rf"{begun.name}.*{name}"):
        fit((X, Y), replace(SETTINGS, **{name: CHANGES[name]}), path=begun, resume=True)
    assert begun.read_bytes() == before


@pytest.mark.parametrize(
    "rows",
    [(X + 1e-9, Y), (X, Y[::-1]), (X[:-1], Y[:-1]), (X, Y, np.r_[2.0, np.ones(59)])],
    ids=["features", "targets", "fewer", "weights"],
)
def test_other_rows(rows: Any, begun: Path) -> None:
    with pytest.raises(ValueError, match=rf"{begun.name}.*rows") as caught:
        fit(rows, SETTINGS, path=begun, resume=True)
    assert not re.search("[0-9a-f]{32}", str(caught.value).replace(str(begun), ""))  # no digest


@pytest.mark.parametrize(
    ("rows", "words"), [(([(X, Y), (X, Y)],), "n_rows"), (([(X + 0.1 * X**2, Y)],), "scaling")]
)
def test_other_rows_of_a_stream(rows: Any, words: str, path: Path) -> None:
    cut_fit(path, 2, 4, "stream")
    with pytest.raises(ValueError, match=words):
        fit(rows, STREAMED, path=path, resume=True)


def test_the_same_rows_have_one_digest() -> None:
    rows = np.arange(12.0).reshape(4, 3)
    for same in (rows.copy(), np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2]):
        assert digest([same]) == digest([rows])
    others: list[list[Any]] = [[rows.astype("f4")], [rows.ravel()], [rows.T], [-rows], [rows] * 2]
    assert len({digest(other) for other in [[rows], *others]}) == 6


# Files


def test_resuming_needs_a_checkpoint(path: Path) -> None:
    with pytest.raises(ValueError, match="checkpoint"):
        fit((X, Y), SETTINGS, resume=True)
    with pytest.raises(FileNotFoundError, match=path.name):
        fit((X, Y), SETTINGS, path=path, resume=True)
    path.write_bytes(b"inputs,targets\n")
    with pytest.raises(ValueError, match=path.name):
        fit((X, Y), SETTINGS, path=path, resume=True)


@pytest.mark.parametrize("kind", ["table", "model"])
def test_other_files_are_not_overwritten(kind: str, path: Path) -> None:
    path.write_bytes(b"inputs,targets\n")
    if kind == "model":
        persistence.save(path, "BowTieRegressor", [1])
    before, watch = path.read_bytes(), Watching()
    with pytest.raises(ValueError, match=path.name):
        fit((X, Y), SETTINGS, watch, path=path)
    assert path.read_bytes() == before
    assert watch.said == []


def test_a_new_fit_takes_the_place_of_an_old_one(begun: Path) -> None:
    fit((X, Y), replace(SETTINGS, max_iter=2), path=begun)
    assert persistence.load(begun, KIND)["identity"]["max_iter"] == 2
    begun.write_bytes(b"")
    fit((X, Y), replace(SETTINGS, max_iter=3), path=str(begun))
    assert persistence.load(begun, KIND)["identity"]["max_iter"] == 3


def test_a_full_disk_does_not_end_the_fit(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that is there stays, and can be resumed."""
    expected = fit((X, Y), SETTINGS)
    before = begun.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(UserWarning, match=f"{begun.name}.*No space"):
            found = fit((X, Y), SETTINGS, path=begun)
    assert_same_ensemble(found.ensemble, expected.ensemble)
    assert begun.read_bytes() == before
    again = fit((X, Y), SETTINGS, path=begun, resume=True)
    assert_same_ensemble(again.ensemble, expected.ensemble)


def spoil(path: Path, how: str, patch: pytest.MonkeyPatch) -> None:
    """Make it impossible to write a checkpoint from now on."""
    if how == "the disk is full":

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, "fsync", full)
    elif how == "memory is full":

        def no_memory(*_: Any) -> None:
            raise MemoryError

        patch.setattr(persistence.file, "to_bytes", no_memory)
    elif how == "it is a device":
        path.unlink()
        path.symlink_to("/dev/full")
    else:
        shutil.rmtree(path.parent)
        if how == "a file is where the folder was":
            path.parent.write_text("notes")
        elif how == "a folder is where the file was":
            path.mkdir(parents=True)


WAYS = {
    "the disk is full": "is there and can be resumed",
    "memory is full": "is there and can be resumed",
    "it is a device": "no earlier one",
    "the folder is gone": "no earlier one",
    "a file is where the folder was": "no earlier one",
    "a folder is where the file was": "no earlier one",
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(
    ("how", "kind", "member", "sweep"),
    [
        *[(how, "memory", 7, 1) for how in WAYS],
        *[(how, "stream", 2, 3) for how in ("the disk is full", "it is a device")],
        ("the folder is gone", "memory", 3, 1),
    ],
)
def test_a_fit_outlives_its_checkpoints(
    how: str, kind: str, member: int, sweep: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the last or an earlier task on none can be written: one true warning, the same model."""
    path = tmp_path / "folder" / "fit.checkpoint"
    path.parent.mkdir()
    settings, rows = KINDS[kind]
    expected = fit(rows(), settings)
    done = False

    def on_sweep(watch: Watching, progress: Any) -> bool:
        nonlocal done
        if not done and watch.n_members == member and progress.sweep >= sweep:
            done = True
            spoil(path, how, monkeypatch)
        return False

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fit(rows(), settings, Watching(on_sweep), path=path)
    assert_same_ensemble(found.ensemble, expected.ensemble)
    [text] = [str(one.message) for one in told]
    assert path.name in text
    assert WAYS[how] in text
    monkeypatch.undo()
    if "can be resumed" in WAYS[how]:
        again = fit(rows(), settings, path=path, resume=True)
        assert_same_ensemble(again.ensemble, expected.ensemble)
    else:
        assert not path.is_file()


def test_a_file_of_another_fit_is_not_taken_for_an_earlier_checkpoint(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(begun, "the disk is full", monkeypatch)
    with pytest.warns(UserWarning, match="not of this fit"):
        fit((X, Y), replace(SETTINGS, max_iter=3), path=begun)
