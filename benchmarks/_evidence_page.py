"""The page of the ladder, its figures and README's table, from the records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import rankdata, studentized_range

from benchmarks import portfolio, select_features
from benchmarks._ladder import METHODS, QUOTED
from benchmarks._run import Record, by
from benchmarks.data import FIVE_SETS
from benchmarks.paper import published

Runs = dict[tuple[str, str], dict[int, Record]]
"""Records by table and method, then by split."""
OURS = {
    "numbers": "BowTieRegressor",
    "classes": "BowTieClassifier",
    "counts": "BowTieCountRegressor",
}
SCORES = {"numbers": ("nll", "crps", "rmse"), "classes": ("loss", "brier", "error")}
SCORES["counts"] = SCORES["numbers"]
"""The loss, another proper score, and the error of the point prediction."""
SHOWN = ("coverage", "ece", "width", "scale", "seconds", "predict_seconds", "mb")
HEAD = """# From the paper to the strongest

Written by `python -m benchmarks evidence`; every number is made of the records beside this page.
Random splits from 0 on, the same ones for all methods, one core each; a tenth of the rows is the
test (of scikit-learn's classes a stratified quarter, of kin40k and generated tables 2,000 rows or
more). Tables above 10,000 rows and slow methods have three splits at most. Seconds are
processor seconds. NLL is that of a method's own density; coverage and width are those of 90 %
intervals, the width over the deviation of the training targets; memory is the peak of the process
above that before the fit. Means over tables of the means over splits; differences of the loss are
medians over tables, and seconds geometric means.
Evidence-only tables took part in no choice of any setting, and nothing was changed after they were
run.

Ranks compare the default with the other methods that have all tables; a variant of ours is ranked
in the place of the default. A method that failed is last. Differences are paired by split.

Competitors have their defaults, and a fifth of the training rows where they need held-out ones: to
stop (boosting, deep ensemble, TabM, RealMLP) and for a constant variance (LightGBM, CatBoost
without variances, TabM, RealMLP). Quantile forest: 99 quantiles, smoothed. Deep ensemble: five
networks with variances. Last-layer Laplace: exact, by evidence. BART: four chains. Bayesian deep
ensemble: the settings of its authors' airfoil example. NUTS: 50 ReLU units, Gaussian weights, one
chain of 300 + 300 draws, trees up to depth 10. Texts are one-hot columns and gaps are medians with
a mark, but for this library and boosting, which have their own ways (`benchmarks/_ladder.py`).
"""


def write_page(
    records: Iterable[Record],
    cases: Sequence[tuple[str, str, str, int]],
    tables: dict[str, Any],
    unread: Sequence[str],
    given: Any,
) -> None:
    """Everything that the records say."""
    records = list(records)
    parts = by(records, "part")
    ladder = parts.get(("ladder",), [])
    runs: Runs = {
        key: {r["seed"]: r for r in group if "failed" not in r}
        for key, group in by(ladder, "table", "method").items()
    }
    sets = {
        f"{kind}, {name}": [
            t for t in tables
            if tables[t].kind == kind and (name == "all" or tables[t].group == "evidence-only")
            and any((t, m) in runs for m in METHODS[kind])
        ]
        for kind in METHODS for name in ("evidence-only", "all")
    }  # fmt: skip
    evidence, everything = sets["numbers, evidence-only"], sets["numbers, all"]
    large = [t for t in everything if tables[t].rows >= 20_000]
    aims = [
        *_first(runs, evidence, "evidence-only tables"),
        *_first(runs, everything, "all tables"),
        *_first(runs, large, "tables of 20,000 rows or more"),
        *_against_samplers(runs),
    ]
    figures = _figures(runs, evidence or everything, parts, given.page)
    five = _five(runs)
    sections = [
        HEAD,
        "## What was asked for\n\n" + "\n".join(f"- {aim}" for aim in aims),
        f"## Numbers: {len(evidence)} evidence-only tables\n\n"
        + _ladder(runs, {"numbers": evidence}),
        figures["ranks"] + figures["seconds"] + figures["calibration"],
        "## The paper's five tables\n\nRMSE / NLL of a Gaussian with the predictive mean and "
        f"variance, seconds of a fit.\n\n{five}",
        "## A published protocol\n\n" + _protocol(parts),
        f"## Numbers: all {len(everything)} tables\n\n" + _ladder(runs, {"numbers": everything}),
        "## Classes and counts\n\nEvidence-only classes, all classes, generated counts.\n\n"
        + _ladder(runs, {n: t for n, t in sets.items() if t and not n.startswith("numbers")}),
        "## Where we lose\n\n" + _losses(runs, tables),
        *(
            f"## {title}\n\n{text()}\n{figures.get(part, '')}"
            for title, part, text in (
                ("Ablation", "ablation", lambda: _ablation(parts)),
                ("Growth", "growth", lambda: "Smooth functions of generated columns."),
                ("Selection", "selection", lambda: _selection(parts)),
            )
            if (part,) in parts
        ),
        "## What was left out\n\n" + _left_out(records, cases, tables, unread),
    ]  # fmt: skip
    text = "\n\n".join(section.strip() for section in sections) + "\n"
    given.page.write_text(text, encoding="utf-8")
    prose = " ".join(line for line in text.splitlines() if not line.startswith("|"))
    print(f"{text}\n{len(prose.split()):,} words, {len(text.split()):,} with the tables.")
    if given.readme is not None:
        begin, end = "<!-- table ladder -->\n", "\n<!-- end -->"
        before, rest = given.readme.read_text(encoding="utf-8").split(begin)
        after = rest.split(end, 1)[1]
        given.readme.write_text(f"{before}{begin}\n{five}{end}{after}", encoding="utf-8")


# Scores by method and table


def _means(runs: Runs, names: Sequence[str], methods: Sequence[str], score: str) -> np.ndarray:
    """(methods, tables): means over the splits that all of them have; NaN where one has none."""
    values = np.full((len(methods), len(names)), np.nan)
    for j, name in enumerate(names):
        known = [runs.get((name, method), {}) for method in methods]
        splits = [set(each) for each in known if each]
        shared = set.intersection(*splits) if splits else set()
        for i, each in enumerate(known):
            if each and shared:
                values[i, j] = np.mean([each[split].get(score, np.nan) for split in shared])
    return values


def _others(runs: Runs, names: Sequence[str], kind: str) -> list[str]:
    """Methods that are not ours and were tried on every table."""
    return [m for m in METHODS[kind] if not _is_ours(m) and all((n, m) in runs for n in names)]


def _is_ours(method: str) -> bool:
    return method.startswith(("BowTie", "as in the paper"))


def _ranks(runs: Runs, names: Sequence[str], kind: str, score: str) -> dict[str, float]:
    """Mean ranks of the others with our default, and of our variants in its place."""
    others, found = _others(runs, names, kind), {}
    ours = [m for m in METHODS[kind] if _is_ours(m) and all((n, m) in runs for n in names)]
    for mine in ours if names else ():
        compared = [mine, *others]
        values = _means(runs, names, compared, score)
        mean = rankdata(np.where(np.isnan(values), np.inf, values), axis=0).mean(axis=1)
        found |= dict(zip(compared if mine == OURS[kind] else [mine], mean, strict=False))
    return found


def _changes(runs: Runs, names: Sequence[str], method: str, kind: str, score: str) -> np.ndarray:
    """Of each table on which both have results: the score of the method and of our default."""
    pairs = _means(runs, names, [OURS[kind], method], score)
    return pairs[:, np.isfinite(pairs).all(axis=0)]


def _critical(n_methods: int, n_tables: int) -> float:
    """Nemenyi's critical difference of mean ranks at 5 %."""
    quantile = studentized_range.ppf(0.95, n_methods, np.inf) / 2**0.5
    return float(quantile * (n_methods * (n_methods + 1) / (6.0 * n_tables)) ** 0.5)


def _mean(values: np.ndarray) -> float:
    """Of the finite ones."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


def _geometric(values: np.ndarray) -> float:
    return float(np.exp(_mean(np.log(np.maximum(values, 1e-4)))))


# Sections


def _first(runs: Runs, names: Sequence[str], what: str) -> list[str]:
    """Whether our default has the first mean rank."""
    lines = []
    for score in ("nll", "crps", "rmse"):
        ranks = _ranks(runs, names, "numbers", score)
        ranks = {m: r for m, r in ranks.items() if m == OURS["numbers"] or not _is_ours(m)}
        if OURS["numbers"] not in ranks or len(ranks) < 2:
            continue
        mine = ranks.pop(OURS["numbers"])
        best = min(ranks, key=lambda method: ranks[method])
        verdict = "yes" if mine <= ranks[best] else "**no**"
        lines.append(
            f"First in mean rank of {score.upper()} on {len(names)} {what}: {verdict}, "
            f"{mine:.1f} (next or before: {best}, {ranks[best]:.1f})"
        )
    return lines


def _against_samplers(runs: Runs) -> list[str]:
    """NUTS, seconds of a Gaussian process, BART and CatBoost on the paper's five tables."""
    mine, lines = OURS["numbers"], []
    for score in ("nll", "rmse"):
        pairs = _changes(runs, FIVE_SETS, "NUTS", "numbers", score)
        if pairs.size:
            count = int(np.sum(pairs[0] <= pairs[1]))
            lines.append(f"{score.upper()} at or below NUTS: on {count} of {pairs.shape[1]}")
    for other in ("NUTS", "Gaussian process", "BART", "CatBoost, uncertainty"):
        pairs = _changes(runs, FIVE_SETS, other, "numbers", "seconds")
        if pairs.size:
            ratio = pairs[0].mean() / pairs[1].mean()
            lines.append(f"Mean seconds of {mine} over those of {other}, five tables: {ratio:.2g}")
    return lines


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _number(value: float, form: str) -> str:
    return "" if np.isnan(value) else format(value, form)


def _ladder(runs: Runs, groups: dict[str, list[str]]) -> str:
    """Of each group, a row for each method, by its rank."""
    rows = []
    for title, names in groups.items():
        kind = title.split(",")[0]
        ranks = [_ranks(runs, names, kind, score) for score in SCORES[kind]]
        for method in sorted(METHODS[kind], key=lambda m: ranks[0].get(m, np.inf)):
            loss, error = (_changes(runs, names, method, kind, SCORES[kind][i]) for i in (0, -1))
            if not loss.size:
                continue
            own = {s: _means(runs, names, [method], s)[0] for s in SHOWN}
            cells = [
                title,
                f"**{method}**" if method == OURS[kind] else method,
                str(loss.shape[1]),
                " / ".join(f"{rank[method]:.1f}" for rank in ranks if method in rank),
                f"{np.median(loss[1] - loss[0]):+.3f}",
                f"{_geometric(error[1] / error[0]):.2f}",
                f"{_mean(own['ece' if kind == 'classes' else 'coverage']):.3f}",
                f"{_mean(own['width'] / own['scale']):.2f}",
                *(f"{_geometric(own[s]):.2g}" for s in ("seconds", "predict_seconds")),
                f"{_mean(own['mb']):.0f}",
            ]
            rows.append(["" if cell == "nan" else cell for cell in cells])
    kinds = {title.split(",")[0] for title in groups}
    names = "NLL / CRPS / RMSE" if kinds == {"numbers"} else "loss / Brier or CRPS / error"
    inside = "coverage" if kinds == {"numbers"} else "calibration error or coverage"
    head = ["tables", "method", "number", f"ranks of {names}", "loss less the default's"]
    head += ["error over it", inside, "width", "fit, s", "predict, s", "MB"]
    begin = 1 if len(groups) == 1 else 0
    return _table(head[begin:], (row[begin:] for row in rows))


LADDER = (
    ("`BowTieNetwork.as_in_paper()`", "as in the paper"),
    ("`BowTieNetwork.as_in_paper(n_members=4)`", "as in the paper, four"),
    ("`BowTieNetwork(n_members=1)`", "BowTieNetwork, one member"),
    ("`BowTieNetwork()`", "BowTieNetwork"),
    ("`BowTieRegressor()`", "BowTieRegressor"),
    ("LightGBM", "LightGBM"),
    ("CatBoost with variances", "CatBoost, uncertainty"),
    ("NGBoost", "NGBoost"),
    ("TabM", "TabM"),
    ("Gaussian process", "Gaussian process"),
    ("BART", "BART"),
    ("Bayesian deep ensemble", "Bayesian deep ensemble"),
    ("NUTS", "NUTS"),
)
"""Rows of README's table."""


def _five(runs: Runs) -> str:
    """RMSE / NLL by table, mean NLL and seconds; printed rows of the paper first and last."""
    known = published()
    scores = ("rmse", "gaussian_nll")

    def row(label: str, values: np.ndarray, seconds: str) -> list[str]:
        cells = [" / ".join(f"{x:.2f}" for x in pair).replace("nan", "-") for pair in values.T]
        return [label, *cells, _number(values[1].mean(), ".2f"), seconds]

    def printed(label: str, method: str) -> list[str]:
        numbers = [[known[method, name, score][0] for name in FIVE_SETS] for score in scores]
        return row(label, np.array(numbers), "")

    rows = [printed("the paper, printed (VBNN)", "VBNN")]
    rows.append(printed("the paper, printed (4VBNN)", "4VBNN"))
    for label, method in LADDER:
        if any(runs.get((name, method)) for name in FIVE_SETS):
            values = np.array([_means(runs, FIVE_SETS, [method], score)[0] for score in scores])
            seconds = np.nanmean(_means(runs, FIVE_SETS, [method], "seconds"))
            rows.append(row(label, values, f"{seconds:.1f}"))
    rows.append(printed("HMC, printed in the paper", "HMC"))
    return _table(["method", *FIVE_SETS, "mean NLL", "seconds"], rows)


def _protocol(parts: Any) -> str:
    """Ours beside what others published on the same split."""
    done = [r for r in parts.get(("protocol",), []) if "failed" not in r]
    rows = []
    for table, printed in QUOTED.items():
        known = [(f"{name}, quoted", *pair, None, None) for name, pair in printed.items()]
        keys = ("rmse", "gaussian_nll", "nll", "seconds")
        for (method,), runs in by((r for r in done if r["table"] == table), "method").items():
            known.append((f"**{method}**", *(np.mean([r[key] for r in runs]) for key in keys)))
        for name, *values in sorted(known, key=lambda row: row[1]):
            forms = (".3f", ".3f", ".3f", ".0f")
            cells = ["" if v is None else format(v, f) for v, f in zip(values, forms, strict=True)]
            rows.append([table, name, *cells])
    about = (
        "One split, targets standardised, means of five seeds. Quoted rows are what the authors "
        "of `sklearn-contrib-bde` printed, ten cores; TabPFN's weights could not be reached here. "
        "Airfoil, on other splits, took part in choices; bike sharing in none.\n\n"
    )
    head = ["table", "method", "RMSE", "NLL of a Gaussian", "NLL of the own density", "fit, s"]
    return about + _table(head, rows)


def _losses(runs: Runs, tables: dict[str, Any]) -> str:
    """Tables on which another method is better, beyond two standard errors if there are splits."""
    lines = []
    for name, table in tables.items():
        kind, mine = table.kind, runs.get((name, OURS[table.kind]), {})
        worst: tuple[float, str] = (0.0, "")
        for other in METHODS[kind]:
            theirs = runs.get((name, other), {})
            splits = sorted(set(mine) & set(theirs))
            if _is_ours(other) or not splits:
                continue
            gap = np.array([mine[s][SCORES[kind][0]] - theirs[s][SCORES[kind][0]] for s in splits])
            error = gap.std(ddof=1) / len(gap) ** 0.5 if len(gap) > 1 else 0.0
            if gap.mean() > max(worst[0], 2.0 * error):
                text = f"{name} ({table.group}, {table.rows:,} rows): {other} is better by "
                text += f"{gap.mean():.3f} " + (f"± {error:.3f}" if error else "on one split")
                worst = gap.mean(), text + _reasons(runs, name, other, table)
        if worst[1]:
            lines.append((table.group != "evidence-only", -worst[0], f"- {worst[1]}"))
    if not lines:
        return "On no table is another method better, beyond two standard errors.\n"
    shown = [line for *_, line in sorted(lines)[:10]]
    return f"On {len(lines)} tables, in NLL or log loss; the first ten:\n\n" + "\n".join(shown)


def _reasons(runs: Runs, name: str, other: str, table: Any) -> str:
    """How much of the gap is error, how much is spread, and what more effort gives."""
    mine = OURS[table.kind]
    best = _changes(runs, [name], f"{mine}, best", table.kind, SCORES[table.kind][0])
    effort = f', effort="best" changes it by {np.mean(best[1] - best[0]):+.3f}' if best.size else ""
    if table.kind == "classes":
        error = _means(runs, [name], [mine, other], "error")[:, 0]
        return f"; wrong classes {error[0]:.3f} and {error[1]:.3f}{effort}."
    rmse, share = (_means(runs, [name], [mine, other], s)[:, 0] for s in ("rmse", "coverage"))
    return (
        f"; log RMSE explains {np.log(rmse[0] / rmse[1]):+.3f}, the rest is spread and shape; "
        f"coverage {share[0]:.2f} and {share[1]:.2f}{effort}."
    )


def _paired(records: Sequence[Record], score: str) -> dict[str, tuple[float, float, int]]:
    """Change against "defaults" by method: mean over tables, its standard error, pairs."""
    of = {(r["method"], r["table"], r["seed"]): r for r in records if "failed" not in r}
    found = {}
    for method in dict.fromkeys(m for m, _, _ in of):
        keys = [(t, s) for m, t, s in of if m == method and ("defaults", t, s) in of]
        pairs = np.array([[of["defaults", *k][score], of[method, *k][score]] for k in keys])
        if len(pairs):
            change = (
                pairs[:, 1] - pairs[:, 0] if score == "nll" else np.log(pairs[:, 1] / pairs[:, 0])
            )
            error = change.std(ddof=1) / len(change) ** 0.5 if len(change) > 1 else np.nan
            found[method] = (change.mean(), error, len(change))
    return found


PLANTED = ("false", "power", "seconds")
WINGS = {"ablation": "BowTieRegressor", "wing": "BowTieNetwork"}


def _ablation(parts: Any) -> str:
    """One change at a time, both wings."""
    rows = []
    for part, estimator in WINGS.items():
        records = parts.get((part,), [])
        losses, errors, costs = (_paired(records, s) for s in ("nll", "rmse", "seconds"))
        for method, (mean, error, count) in losses.items():
            if method != "defaults":
                cells = [f"{mean:+.3f} ± {error:.3f}", f"{100.0 * errors[method][0]:+.1f}"]
                rows.append(
                    [estimator, method, str(count), *cells, f"{np.exp(costs[method][0]):.2f}"]
                )
    about = (
        "Changes against the defaults on the same splits from 500 on, of the practical wing on "
        f"{len(portfolio.TABLES)} tables, of the paper's on its five.\n\n"
    )
    return about + _table(
        ["estimator", "change", "pairs", "NLL", "RMSE, %", "seconds over the default's"], rows
    )


def _selection(parts: Any) -> str:
    """Rate and power by rule, over all planted tables; then `BowTieNetwork.selection`."""
    rows = []
    for part, label in (("selection", ""), ("network selection", "`BowTieNetwork.selection`, ")):
        done = [r for r in parts.get((part,), []) if "failed" not in r]
        for (method,), runs in by(done, "method").items():
            false, power, seconds = np.array([[r[k] for k in PLANTED] for r in runs]).T
            cells = [f"{false.mean():.3f} ± {false.std() / len(false) ** 0.5:.3f}"]
            cells += [f"{np.nanmean(power):.2f}", f"{seconds.mean():.1f}"]
            rows.append([f"{label}{method}", str(len(runs)), *cells])
    about = (
        f"Stated rate {select_features.RATE}. The last rows, by start, have planted tables of "
        "their own ([selection](selection.md)).\n\n"
    )
    return about + _table(["rule", "tables", "false share", "power", "seconds"], rows)


def _left_out(
    records: Sequence[Record], cases: Sequence[Any], tables: dict[str, Any], unread: Sequence[str]
) -> str:
    """What cannot be read, is not installed, failed, or was not run."""
    lines = list(unread)
    absent = {f"{n} ({h.needs})" for k in METHODS.values() for n, h in k.items() if not h.is_here}
    if absent:
        lines.append(f"Not installed: {', '.join(sorted(absent))}.")
    for kind, methods in METHODS.items():
        limits = [f"{n} {m.most_rows:,.0f}" for n, m in methods.items() if m.most_rows < np.inf]
        if limits:
            lines.append(f"Most training rows, {kind}: {', '.join(limits)}.")
    failed = by((r for r in records if "failed" in r), "failed")
    for (why,), group in sorted(failed.items(), key=lambda item: -len(item[1]))[:12]:
        counts = Counter(r["method"] for r in group)
        lines.append(f"{why[:100]}: {', '.join(f'{m} ({n})' for m, n in counts.items())}.")
    done = {tuple(r[name] for name in ("part", "table", "method", "seed")) for r in records}
    missing = Counter(
        f"{case[0]} {tables[case[1]].group if case[0] == 'ladder' else ''}".strip()
        for case in cases
        if case not in done
    )
    if missing:
        lines.append(f"Cases not run: {', '.join(f'{g} {n:,}' for g, n in missing.items())}.")
    lines.append(
        "More of ablation: [portfolio](portfolio.md); of growth: [fit](fit.md); of selection: "
        "[select_features](select_features.md), [selection](selection.md)."
    )
    lines.append(
        "TabPFN and TabICL need weights from a hub that could not be reached; nothing is published "
        "on our splits, and TabPFN is quoted on the protocol's."
    )
    return "\n".join(f"- {line}" for line in lines)


# Figures


def _figures(runs: Runs, names: Sequence[str], parts: Any, page: Path) -> dict[str, str]:
    """Draw all; the lines that show them."""
    plt.switch_backend("Agg")
    folder = page.parent.parent / "figures"
    folder.mkdir(exist_ok=True)
    drawings: dict[str, tuple[str, Callable[[], Any]]] = {
        "ranks": ("Mean ranks; grey: the critical difference", lambda: _draw_ranks(runs, names)),
        "seconds": ("Loss against seconds", lambda: _draw_seconds(runs, names)),
        "calibration": ("Observed less stated coverage", lambda: _draw_calibration(runs, names)),
        "ablation": ("Changes of NLL", lambda: _draw_ablation(parts)),
        "growth": ("Seconds and memory by rows and columns", lambda: _draw_growth(parts)),
    }
    links = {}
    for name, (title, draw) in drawings.items():
        if name in ("ablation", "growth") and (name,) not in parts:
            continue
        draw().savefig(folder / f"evidence_{name}.png", dpi=110)
        plt.close("all")
        links[name] = f"![{title}](../figures/evidence_{name}.png)\n\n"
    return links


OTHERS = [f"C{i}" for i in range(10) if i != 3]
"""Colours that are not that of our default."""


def _colour(method: str) -> str:
    return "C3" if method in OURS.values() else "C1" if _is_ours(method) else "C0"


def _draw_ranks(runs: Runs, names: Sequence[str]) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
    for axis, score in zip(axes, ("nll", "crps", "rmse"), strict=True):
        ranks = _ranks(runs, names, "numbers", score)
        ordered = sorted(ranks, key=lambda m: -ranks[m])
        axis.barh(ordered, [ranks[m] for m in ordered], color=[_colour(m) for m in ordered])
        if ranks:
            count = 1 + len(_others(runs, names, "numbers"))
            width = _critical(max(count, 2), max(len(names), 1))
            least = min(ranks.values())
            axis.axvspan(least, least + width, color="0.5", alpha=0.2, lw=0)
        axis.set(xlabel=f"mean rank of {score.upper()}", title=f"{len(names)} tables")
        axis.tick_params(axis="y", labelsize=7)
    return figure


def _draw_seconds(runs: Runs, names: Sequence[str]) -> Any:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axis, score in zip(axes, ("nll", "rmse"), strict=True):
        points = []
        for method in METHODS["numbers"]:
            pairs = _changes(runs, names, method, "numbers", score)
            if pairs.size:
                apart = np.log(pairs[1] / pairs[0]) if score == "rmse" else pairs[1] - pairs[0]
                seconds = _geometric(_means(runs, names, [method], "seconds"))
                points.append((float(np.median(apart)), seconds, method))
                axis.plot(seconds, points[-1][0], "o", color=_colour(method))
        axis.set(xscale="log", xlabel="seconds of a fit, geometric mean")
        axis.set_yscale("symlog", linthresh=0.1)
        name = "log RMSE" if score == "rmse" else "NLL"
        axis.set_ylabel(f"{name} less BowTieRegressor's, median")
        axis.axhline(0.0, color="0.7", lw=0.8)
        axis.margins(x=0.3, y=0.1)
        _name(axis, points)
    return figure


def _name(axis: Any, points: list[tuple[float, float, str]]) -> None:
    """Names beside points (y, x, name), higher where they would meet another's."""
    axis.autoscale_view()
    placed: list[tuple[float, float]] = []
    for y, x, name in sorted(points):
        right, up = start = axis.transData.transform((x, y)) * 72.0 / axis.figure.dpi
        while any(abs(right - other) < 90.0 and abs(up - high) < 8.0 for other, high in placed):
            up += 1.0
        placed.append((right, up))
        beside = {"xytext": (5.0, up - start[1] - 2.0), "textcoords": "offset points"}
        axis.annotate(name, (x, y), fontsize=7, **beside)


def _draw_calibration(runs: Runs, names: Sequence[str]) -> Any:
    figure, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
    shown = [m for m in METHODS["numbers"] if m == OURS["numbers"] or not _is_ours(m)]
    for place, method in enumerate(shown):
        pits = [
            np.sum([r["pit"] for r in runs[n, method].values()], axis=0)
            for n in names
            if runs.get((n, method))
        ]
        if not pits:
            continue
        shares = np.mean([pit / pit.sum() for pit in pits], axis=0)
        inside = [shares[10 - k : 10 + k].sum() for k in range(1, 10)]
        level = np.arange(1, 10) / 10
        ours = method == OURS["numbers"]
        style = {"color": "C3", "lw": 3} if ours else {"color": OTHERS[place % 9], "lw": 1}
        axis.plot(
            level, np.array(inside) - level, label=method, ls="-" if place < 9 else "--", **style
        )
    axis.axhline(0.0, color="0.6", lw=0.8)
    axis.set(xlabel="stated share of central intervals", ylabel="observed less stated")
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure


def _draw_ablation(parts: Any) -> Any:
    figure, axes = plt.subplots(1, 2, figsize=(11, 6), layout="constrained")
    for axis, (part, estimator) in zip(axes, WINGS.items(), strict=True):
        changes = _paired(parts.get((part,), []), "nll")
        changes.pop("defaults", None)
        ordered = sorted(changes, key=lambda m: changes[m][0])
        means, errors = ([changes[m][i] for m in ordered] for i in (0, 1))
        axis.errorbar(means, ordered, xerr=2.0 * np.array(errors), fmt="o", capsize=2)
        axis.axvline(0.0, color="0.6", lw=0.8)
        axis.set(title=estimator, xlabel="NLL less that of the defaults, ± two standard errors")
        axis.tick_params(axis="y", labelsize=7)
    return figure


def _draw_growth(parts: Any) -> Any:
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    done = [r for r in parts.get(("growth",), []) if "failed" not in r]
    for (method,), runs in by(done, "method").items():
        sizes = sorted((*map(int, r["table"].split(" x ")), r["seconds"], r["mb"]) for r in runs)
        rows = np.array([size for size in sizes if size[1] == 10]).reshape(-1, 4)
        wide = np.array([size for size in sizes if size[0] == 1_000]).reshape(-1, 4)
        for axis, points, x, y in (
            (axes[0], rows, 0, 2),
            (axes[1], rows, 0, 3),
            (axes[2], wide, 1, 2),
        ):
            axis.loglog(points[:, x], points[:, y], "o-", label=method, ms=4)
    labels = (
        ("rows, of 10 columns", "seconds of a fit"),
        ("rows, of 10 columns", "peak memory, MB"),
    )
    for axis, (x, y) in zip(
        axes, (*labels, ("columns, of 1,000 rows", "seconds of a fit")), strict=True
    ):
        axis.set(xlabel=x, ylabel=y)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    return figure
