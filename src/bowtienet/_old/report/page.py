"""From the content of a report to one HTML file that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.resources
import os
import shlex
from pathlib import Path
from typing import Any

from bowtienet._old import persistence
from bowtienet._old.report import class_sentences, sentences
from bowtienet._old.report.content import ReportContent, collect
from bowtienet._old.report.figures import MOST_BARS
from bowtienet._old.report.targets import Progress
from bowtienet._old.report.verdict import verdicts
from bowtienet._old.report.wording import clean, count, number, percent, quantity, rarity

SECTIONS = (
    ("glance", "At a glance"),
    ("whatif", "What if"),
    ("scores", "Scores"),
    ("calibration", "Calibration"),
    ("residuals", "Residuals"),
    ("features", "Features"),
    ("surprise", "Improbable rows"),
    ("outside", "Outside"),
    ("data", "Data"),
    ("fit", "Fit"),
    ("network", "Network"),
    ("load", "Loading"),
)
_SCRIPTS = ("report.js", "whatif.js", "whatif_panel.js")


def sections(content: ReportContent) -> tuple[tuple[str, str], ...]:
    """Places and names of the sections: classes have no residuals."""
    of_classes = content.classes is not None
    return tuple(one for one in SECTIONS if not (of_classes and one[0] == "residuals"))


def write_report(model: Any, X: Any, y: Any, path: str | os.PathLike[str], **settings: Any) -> None:
    """Write one HTML page about a fitted model and how it predicts some rows.

    The page opens from disk and holds all it needs: up to 4 MB, and up to 8 MB more for the what-if
    panel, which is left out of a page about a larger model. Of more than 20,000 rows a random
    20,000 are scored.

    Parameters
    ----------
    model : BowTieRegressor or BowTieClassifier
        Fitted, to numbers or classes.
    X : table (n, columns)
        Held-out rows, in memory.
    y : array (n,) or (n, outputs), or names
        Targets or labels; or columns of X that hold them.
    path : str or path
        File to write; one that exists is replaced only when the new one is complete.
    **settings :
        Those below, as keywords of `collect`.

    Other Parameters
    ----------------
    train : pair (X, y) or (X, y, sample_weight), optional
        The training rows: the linear baseline is then fitted to them.
    seen : bool, optional
        Whether the rows X were used in fitting, for a sentence about how far their scores can be
        trusted. If so, the linear baseline is fitted to them as well. By default it is not known.
    sample_weight : array (n,) or name, optional
        How many times each row counts for the scores and for the baseline; rows that count for
        nothing are left out.
    row_numbers : sequence of n, optional
        Numbers of the rows in their file; by default the index of a pandas table, or places counted
        from 0.
    coverage : float, default=0.9
        Probability of the intervals.
    title : str, optional
        Heading of the page.
    model_file : str or path, optional
        Where the model is saved, for the lines that load it.
    max_features : int, default=12
        Most features to plot predictions along.
    progress : callable, optional
        Told what is being done and the share that is done.
    """
    place = persistence.check_writable(path)
    _load("jinja2")
    _load("matplotlib")
    content = collect(model, X, y, **settings)
    progress: Progress | None = settings.get("progress")
    if progress is not None:
        progress("writing the page", 0.95)
    # Texts are clean by now but for the file's name, which may hold any byte.
    text = render(content).encode("utf-8", errors="backslashreplace")
    with persistence.replacing(place) as temporary:
        Path(temporary).write_bytes(text)


def render(content: ReportContent) -> str:
    """The page as a text."""
    jinja2 = _load("jinja2")
    markup = importlib.import_module("markupsafe").Markup
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "quantity": quantity,
        "clean": clean,
        "count": count,
        "quote": shlex.quote,
        "rarity": rarity,
        "plain": _plain_number,
        "drawn": lambda plot: markup(plot.svg),
    }
    script, style = "".join(map(_resource, _SCRIPTS)), _resource("report.css")
    environment.loader = jinja2.FunctionLoader(_resource)
    return environment.get_template("report.html").render(
        content=content,
        say=sentences,
        say_of_classes=class_sentences,
        verdicts=verdicts(content),
        sections=sections(content),
        most_bars=MOST_BARS,
        style=markup(style),
        script=markup(script),
        policy=_policy(script, style),
    )


def _plain_number(value: float) -> str:
    """A number as controls read it: 0.3, and not 0.30000000000000004."""
    return f"{value:.12g}"


def _policy(script: str, style: str) -> str:
    """Nothing may be loaded, and no script or style may be used but those of this page."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _resource(name: str) -> str:
    place = importlib.resources.files("bowtienet._old.report") / "templates" / name
    return place.read_text(encoding="utf-8")


def _load(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"reports need {name}: pip install 'bowtienet[report]'.") from error
