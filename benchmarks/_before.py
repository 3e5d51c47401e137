"""The library before the rebuild, in processes that run a checkout of its commit.

git worktree add ../before $(cat benchmarks/before-rebuild)
export BOWTIENET_BEFORE=../before
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

PROGRAM = """
import sys, time, warnings
import numpy as np
import bowtienet
warnings.simplefilter("ignore")
given, answer, model = np.load(sys.argv[1], allow_pickle=True), sys.argv[2], sys.argv[3]
settings = given["settings"].item()
if "y" in given:
    began = time.process_time()
    fitted = getattr(bowtienet, settings.pop("class"))(**settings).fit(given["X"], given["y"])
    np.save(answer, time.process_time() - began)
    fitted.save(model)
else:
    fitted, name = bowtienet.load(model), settings["name"]
    if hasattr(fitted, "predict_dist") and name != "predict_proba":
        np.save(answer, getattr(fitted.predict_dist(given["X"]), name)(*given["arguments"]))
    else:
        np.save(answer, getattr(fitted, name)(given["X"]))
"""


class Before:
    """A fitted estimator of that library; `seconds` are its processor seconds."""

    def __init__(self, name: str, X: Any, y: Any, **settings: Any) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.seconds = float(self._run(X=X, y=y, settings={"class": name, **settings}))

    def __call__(self, X: Any) -> Asked:
        """The predictive distribution of rows."""
        return Asked(self, X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes."""
        return self._run(X=X, arguments=[], settings={"name": "predict_proba"})

    def _run(self, **given: Any) -> Any:
        home = os.environ.get("BOWTIENET_BEFORE")
        if not home or not (Path(home) / "src" / "bowtienet").is_dir():
            raise FileNotFoundError(
                "set BOWTIENET_BEFORE to a checkout of the commit in benchmarks/before-rebuild."
            )
        question, answer, model = (Path(self._folder.name) / n for n in ("q.npz", "a.npy", "m.btn"))
        np.savez(question, **{name: np.asarray(value) for name, value in given.items()})
        environment = {**os.environ, "PYTHONPATH": str(Path(home).resolve() / "src")}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        command = [sys.executable, "-c", PROGRAM, str(question), str(answer), str(model)]
        subprocess.run(command, check=True, env=environment, cwd=self._folder.name)
        return np.load(answer)


class Asked:
    """Answers of a predictive distribution: mean, logpdf, cdf."""

    def __init__(self, fitted: Before, X: Any) -> None:
        self._fitted, self._rows = fitted, X

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: Any) -> Any:
            return self._fitted._run(X=self._rows, arguments=arguments, settings={"name": name})

        return ask
