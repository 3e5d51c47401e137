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
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from bowtienet import load, read_table
from tests.fuzz.cases import Case

LEVELS = (0.01, 0.5, 0.99)
CLOSE = 1e-5
SUFFIXES = (".csv", ".tsv", ".xlsx", ".parquet", ".jsonl", ".btn")
STARTS = (b"", b"PK\x03\x04", b"PAR1", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b", b'{"a": 1}\n')
CONTENTS = st.tuples(
    st.sampled_from(STARTS),
    st.one_of(
        st.binary(max_size=200),
        st.text("ab,;\t|\"'\n\r12.-é:/ ", max_size=300).map(str.encode),
        st.lists(st.sampled_from(("1,2\n", "a;b\n", '"x\n', "1e400,nan\n", "\0"))).map(
            lambda lines: "".join(lines).encode()
        ),
    ),
).map(b"".join)
"""Of files that nobody wrote for us."""


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


def check_foreign(content: bytes) -> None:
    """A file that nobody wrote for us is a table or refused in one sentence."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        for suffix in SUFFIXES:
            path = Path(folder, "file" + suffix)
            path.write_bytes(content)
            try:
                (load if suffix == ".btn" else read_table)(path)
            except ValueError as error:
                assert_sentence(error)
            else:
                assert suffix != ".btn"


def check_damaged(path: Path, answers: dict[str, np.ndarray], case: Case) -> None:
    """A file with a wrong byte, or without its end, is refused or says the same."""
    data, rng = path.read_bytes(), np.random.default_rng(len(case.y))
    for at in rng.integers(0, len(data), 4):
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]):
            path.write_bytes(changed)
            try:
                model = load(path)
            except ValueError as error:
                assert str(path) in str(error), error  # noqa: PT017 (either is right)
            else:
                assert_same(answers_of(model, case), answers)


def assert_sentence(error: ValueError) -> None:
    """Ours, or a list of ours: more than a word, and no page."""
    lines = str(error).splitlines()
    assert len(str(error)) > 20, error
    assert max(map(len, lines)) < 400, error
    assert len(lines) < 20, error


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
    dtypes = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    given: dict[str, np.ndarray] = {}
    for each in session.get_inputs():
        if each.name == "X":
            given["X"] = case.frame.astype(float).to_numpy(dtypes[each.type])
            continue
        exposed = each.name == "exposure"
        column = pd.Series(case.predict["exposure"]) if exposed else case.frame[each.name]
        if each.type == "tensor(string)":
            values = np.array(["" if pd.isna(x) else str(x) for x in column], dtype=object)
        elif each.type == "tensor(int64)":
            values = column.to_numpy("datetime64[us]").astype(np.int64)
        else:
            values = column.astype(float).to_numpy(dtypes[each.type])
        given[each.name] = values[:, None]
    return given
