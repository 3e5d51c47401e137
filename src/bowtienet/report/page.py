"""From the content of a report to one HTML file that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.resources
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from bowtienet import persistence
from bowtienet.estimators.preparing import KINDS
from bowtienet.report import charts, sentences
from bowtienet.report.content import Progress, ReportContent, TargetContent, collect
from bowtienet.report.inputs import inner_coverage
from bowtienet.report.wording import clean, count, number, percent, quantity

SECTIONS = (
    ("glance", "At a glance"),
    ("data", "Data"),
    ("fit", "Fit"),
    ("scores", "Scores"),
    ("calibration", "Calibration"),
    ("inputs", "Inputs"),
    ("network", "Network"),
    ("surprise", "Surprises"),
    ("load", "Loading"),
)


def write_report(model: Any, X: Any, y: Any, path: str | os.PathLike[str], **settings: Any) -> None:
    """Write one HTML page about a fitted model and how it predicts some rows.

    The page opens from disk, holds all it needs and is below 4 MB. Of more than 20,000 rows so
    many are chosen at random.

    Parameters
    ----------
    model : BowTieRegressor, TablePipeline or pipeline that ends with a BowTieRegressor
        Fitted.
    X : table (n, columns)
        Rows in memory, best such as the model has not seen.
    y : array (n,) or (n, outputs), or names
        What happened; or columns of X that hold it.
    path : str or path
        File to write; one that exists is replaced only when the new one is complete.
    **settings :
        Those below, as keywords of `collect`.

    Other Parameters
    ----------------
    train : pair (X, y) or (X, y, sample_weight), optional
        The rows of training: the linear baseline is then fitted to them, and the data summary tells
        of them too.
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
    max_inputs : int, default=12
        Most inputs whose partial dependence is shown.
    progress : callable, optional
        Told what is being done and the share that is done.
    """
    place = persistence.check_writable(path)
    _load_jinja2()
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
    jinja2 = _load_jinja2()
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
    }
    script = _resource("report.js")
    return environment.from_string(_resource("report.html")).render(
        _context(content, markup)
        | {
            "style": markup(_resource("report.css")),
            "script": markup(script),
            "policy": _policy(script),
        }
    )


def _policy(script: str) -> str:
    """Nothing may be loaded, and no script may run but the one of this page."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _context(content: ReportContent, markup: Any) -> dict[str, Any]:
    """What the template reads."""
    several = content.n_targets > 1
    bound = charts.bound_chart(content.fit.bound, content.fit.unit) if content.fit.bound else None
    return {
        "content": content,
        "several": several,
        "deeper": markup("h4" if several else "h3"),
        "sections": SECTIONS,
        "kinds": KINDS,
        "swatch": lambda look: markup(charts.swatch(look)),
        "provenance": sentences.provenance(content),
        "glance": sentences.glance(content),
        "cuts": sentences.cuts(content),
        "data_words": sentences.data(content),
        "scores_heading": sentences.scores_heading(content),
        "scored_words": sentences.scored(content),
        "columns": [(c, markup(charts.histogram_chart(c))) for c in content.columns],
        "bound": None if bound is None else _safe(bound, markup),
        "bound_words": sentences.bound(content.fit),
        "targets": [_target(content, target, markup) for target in content.targets],
        "network_words": sentences.network(content),
        "pruned_scores": sentences.pruned_scores(content),
        "pictures": pictures(content),
        "surprise_words": sentences.surprise(content),
        "python_code": python_code(content),
        "shell_code": shell_code(content),
    }


def _target(content: ReportContent, target: TargetContent, markup: Any) -> dict[str, Any]:
    """What the template reads of one target."""
    found, name = target.scores, target.name
    limits = charts.dependence_limits(target.dependence) if target.dependence else (0.0, 1.0)
    coverages = (inner_coverage(content.coverage), content.coverage)
    return {
        "name": name,
        "has_baseline": found.baseline is not None,
        "baseline_words": found.baseline_words,
        "score_rows": sentences.score_rows(found.model, found.baseline),
        "pairs": _safe(charts.pairs_chart(found.pairs, name, content.coverage), markup),
        "pairs_caption": sentences.pairs(content, target),
        "calibration": _safe(charts.calibration_chart(found.calibration), markup),
        "calibration_caption": sentences.calibration(content, target),
        "pit": _safe(charts.pit_chart(found.pit), markup),
        "relevance": _safe(charts.relevance_chart(target.relevance, name), markup),
        "relevance_caption": sentences.relevance(target),
        "followed": sentences.followed(target),
        "dependence": [
            (
                one.name,
                _safe(charts.dependence_chart(one, name, limits, coverages), markup),
                sentences.dependence(one),
            )
            for one in target.dependence
        ],
        "surprises": found.surprises,
        "surprise_inputs": found.surprise_inputs,
    }


def pictures(content: ReportContent) -> list[tuple[str, str, str]]:
    """Captions, descriptions for those who do not see, and drawings."""
    found = content.network
    heaviest = "The heaviest network" if len(content.fit.member_weights) > 1 else "The network"
    strongest = f"; strongest inputs: {', '.join(found.strongest)}" if found.strongest else ""

    def sized(words: str, side: int) -> str:
        inputs, units, weights = (sizes[side] for sizes in found.drawn)
        sizes = f"{count(inputs, 'input')}, {count(units, 'unit')} and {count(weights, 'weight')}"
        return f"{words}: {sizes}" + (strongest if inputs else "")

    before, after = f"{heaviest} before pruning", f"{heaviest} after pruning"
    is_constant = found.drawn[0][1] == 0
    constant = ": nothing is left, it predicts a constant" if is_constant else ""
    shown = [(after + constant, sized(after, 1), found.after)]
    if found.before is not None:
        shown.insert(0, (before, sized(before, 0), found.before))
    return shown


def _safe(chart: charts.Chart, markup: Any) -> charts.Chart:
    """A chart whose picture the template does not escape once more."""
    return replace(chart, picture=markup(chart.picture))


def python_code(content: ReportContent) -> str:
    """Lines that load the model and predict."""
    return (
        "import bowtienet as bt\n\n"
        f"model = bt.load({content.model_file or 'model.btn'!r})\n"
        'table = bt.read_file("new.csv")\n'
        "mean, std = model.predict(table, return_std=True)\n"
        f"intervals = model.predict_interval(table, coverage={content.coverage:g})"
    )


def shell_code(content: ReportContent) -> str | None:
    """Commands to copy; None if the file has a name whose letters deceive a reader."""
    name = content.model_file or "model.btn"
    if not name.isprintable():
        return None
    file = shlex.quote(name)
    return (
        f"bowtienet inspect {file}\n"
        f"bowtienet predict {file} new.csv --out pred.csv --coverage {content.coverage:g}"
    )


def _resource(name: str) -> str:
    place = importlib.resources.files("bowtienet.report") / "templates" / name
    return place.read_text(encoding="utf-8")


def _load_jinja2() -> Any:
    try:
        return importlib.import_module("jinja2")
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'bowtienet[report]'.") from error
