"""What holds for every fit: an answer or one sentence of ours, and the same answer elsewhere."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from bowtienet import load
from tests.fuzz.cases import Case

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
            model = clone(case.estimator).fit(case.X, case.y, **case.fit)
        except ValueError as error:
            assert 20 < len(str(error)) < 400, error  # noqa: PT017 (either is right)
            return False
        answers = answers_of(model, case)
        check_answers(answers, case)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            model.save(path)
            copies = [load(path), pickle.loads(pickle.dumps(model))]
            if np.ndim(case.y) < 2 and len(case.y) < 20:
                copies.append(clone(case.estimator).fit(case.X, case.y, **case.fit))
            for copy in copies:
                for name, values in answers_of(copy, case).items():
                    np.testing.assert_array_equal(values, answers[name], err_msg=name)
            if hasattr(model, "to_onnx"):
                check_onnx(model, answers, case, Path(folder, "model.onnx"))
    return True


def answers_of(model: Any, case: Case) -> dict[str, np.ndarray]:
    """What a model says of the rows of its fit."""
    if hasattr(model, "classes_"):
        return {"probabilities": model.predict_proba(case.X), "label": model.predict(case.X)}
    mean, std = model.predict(case.X, return_std=True, **case.predict)
    quantiles = model.predict_quantiles(case.X, LEVELS, **case.predict)
    return {"mean": mean, "std": std, "quantiles": quantiles}


def check_answers(answers: dict[str, np.ndarray], case: Case) -> None:
    for name, values in answers.items():
        assert len(values) == len(case.y), name
        if name != "label":
            assert np.isfinite(values).all(), name
    if "probabilities" in answers:
        assert (answers["probabilities"] >= 0.0).all()
        np.testing.assert_allclose(answers["probabilities"].sum(axis=1), 1.0, atol=1e-9)
    else:
        assert (answers["std"] >= 0.0).all()
        assert (np.diff(answers["quantiles"], axis=-1) >= 0.0).all()


def check_onnx(model: Any, answers: dict[str, np.ndarray], case: Case, path: Path) -> None:
    numbers = hasattr(model, "noise")
    model.to_onnx(path, quantiles=LEVELS if numbers else ())
    session = onnxruntime.InferenceSession(path)
    results = session.run(None, _fed(session, case))
    for output, values in zip(session.get_outputs(), results, strict=True):
        expected = answers[output.name]
        if output.name == "label":
            sure = np.sort(answers["probabilities"], axis=1)
            clear = sure[:, -1] - sure[:, -2] > CLOSE
            assert (values[clear] == expected[clear]).all()
        else:
            spread = float(np.std(case.y)) if numbers else 0.0
            near = CLOSE * max(spread, 1e-2 * case.unit if numbers else 1e-3)
            np.testing.assert_allclose(values, expected, rtol=CLOSE, atol=near)


def _fed(session: Any, case: Case) -> dict[str, np.ndarray]:
    inputs = {each.name: each.type for each in session.get_inputs()}
    frame = pd.DataFrame(case.X.to_pandas() if hasattr(case.X, "to_pandas") else case.X)
    dtypes = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    given: dict[str, np.ndarray] = {}
    if "X" in inputs:
        given["X"] = frame.astype(float).to_numpy(dtypes[inputs["X"]])
    elif isinstance(case.X, np.ndarray):
        frame.columns = [f"x{i}" for i in range(frame.shape[1])]
    for name in inputs.keys() - {"X", "exposure"}:
        column = frame[name]
        if inputs[name] == "tensor(string)":
            values = np.array(["" if pd.isna(x) else str(x) for x in column], dtype=object)
        elif inputs[name] == "tensor(int64)":
            values = pd.to_datetime(column).to_numpy("datetime64[us]").astype(np.int64)
        else:
            values = column.astype(float).to_numpy(dtypes[inputs[name]])
        given[name] = values[:, None]
    if "exposure" in inputs:
        given["exposure"] = case.predict["exposure"][:, None].astype(dtypes[inputs["exposure"]])
    return given
