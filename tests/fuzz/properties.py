"""What holds for every fit: an answer or one sentence of ours, and the same answer elsewhere."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from bowtienet import load
from tests.fuzz.cases import Case
from tests.tables.foreign import assert_sentence
from tests.test_onnx import run

LEVELS = (0.01, 0.5, 0.99)
CLOSE = 1e-5


def check(case: Case) -> bool:
    """Whether there was a fit; an AssertionError or an error of anybody else if something fails."""
    with warnings.catch_warnings():
        # Ours are user warnings; anything else, of NumPy too, is an error.
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", category=UserWarning, module="(?!numpy|scipy)")
        try:
            model = clone(case.estimator).fit(case.X, **case.fit)
        except ValueError as error:
            assert_sentence(error)
            return False
        answers = answers_of(model, case)
        check_answers(answers, case)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            model.save(path)
            copies = [load(path), pickle.loads(pickle.dumps(model))]
            if np.ndim(case.y) < 2 and len(case.y) < 20:
                copies.append(clone(case.estimator).fit(case.X, **case.fit))
            for copy in copies:
                assert_same(answers_of(copy, case), answers)
            check_damaged(path, answers, case)
            if hasattr(model, "to_onnx"):
                check_onnx(model, answers, case, Path(folder, "model.onnx"))
    return True


def check_damaged(path: Path, answers: dict[str, np.ndarray], case: Case) -> None:
    """A file with a wrong byte, or without its end, is refused or says the same."""
    data = path.read_bytes()
    for at in np.random.default_rng(len(case.y)).integers(0, len(data), 4):
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            path.write_bytes(changed)
            try:
                assert_same(answers_of(load(path), case), answers)
            except ValueError as error:
                assert str(path) in str(error), error  # noqa: PT017 (either is right)


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """To the bit."""
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


def answers_of(model: Any, case: Case) -> dict[str, np.ndarray]:
    """What a model says of the rows of its fit."""
    assert model.summary()
    if hasattr(model, "classes_"):
        return {"probabilities": model.predict_proba(case.X), "label": model.predict(case.X)}
    mean, std = model.predict(case.X, return_std=True, **case.predict)
    parts = model.predict_components(case.X, **case.predict)
    return {
        "mean": mean,
        "std": std,
        "quantiles": model.predict_quantiles(case.X, LEVELS, **case.predict),
        "interval": model.predict_interval(case.X, 0.9, **case.predict),
        "epistemic": parts.epistemic,
        "noise": parts.noise,
    }


def check_answers(answers: dict[str, np.ndarray], case: Case) -> None:
    """Finite, ordered, and of one piece."""
    for name, values in answers.items():
        assert len(values) == len(case.y), name
        if name != "label":
            assert np.isfinite(values).all(), name
    if "probabilities" in answers:
        assert (answers["probabilities"] >= 0.0).all()
        np.testing.assert_allclose(answers["probabilities"].sum(axis=1), 1.0, atol=1e-9)
        return
    assert min(answers[name].min() for name in ("std", "epistemic", "noise")) >= 0.0
    for name in ("quantiles", "interval"):
        assert (np.diff(answers[name], axis=-1) >= 0.0).all(), name
    total = np.hypot(answers["epistemic"], answers["noise"])
    np.testing.assert_allclose(total, answers["std"], rtol=1e-6)


def check_onnx(model: Any, answers: dict[str, np.ndarray], case: Case, path: Path) -> None:
    """The graph says the same, or one sentence says why there is none."""
    numbers = hasattr(model, "noise")
    try:
        model.to_onnx(path, quantiles=LEVELS if numbers else ())
    except ValueError as error:
        assert_sentence(error)
        return
    more = {"exposure": case.predict["exposure"][:, None]} if case.predict else {}
    results = run(path, case.frame, **more)
    for (name, expected), values in zip(answers.items(), results, strict=False):
        if name == "label":
            sure = np.sort(answers["probabilities"], axis=1)
            clear = sure[:, -1] - sure[:, -2] > CLOSE
            assert (values[clear] == expected[clear]).all()
        else:
            near = CLOSE * (max(np.std(case.y), 1e-2 * case.unit) if numbers else 1e-3)
            np.testing.assert_allclose(values, expected, rtol=CLOSE, atol=near)
