"""Which columns of planted tables are found, and how many of those are false.

Every kind of `benchmarks._old.structure.tables` is drawn with the seeds 500, 501, ...; sizes from 100 x
10 to 2,000 x 50 and 500 x 200 rows and columns, and shares of relevant columns of 5 to 20 %, are
taken in turn. `structure` is the library's default call at rates 0.05 and 0.2. Beside it stand:

- LassoCV of scikit-learn: columns with a coefficient;
- horseshoe: a regression without hidden layer with the library's prior of that name (normal-gamma
  where there is none), columns whose 95 % interval leaves out zero;
- permutation: importance of a fast ensemble on held-out rows, above two deviations of permutations;
- BART (if `stochtree` can be imported): columns with more than twice their share of the splits, of
  20 trees; the splits of many trees are spread over all columns and tell little.

Each of them states no rate. Records go to a file, line by line, so that a run goes on where it was
stopped. `make bench-structure` runs it and prints Markdown; docs/measurements/structure.md holds a
run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LassoCV

from benchmarks._old.structure.tables import KINDS, Table, planted_table, table_of_study
from bowtienet._old import BowTieRegressor, engine
from bowtienet._old.ensemble.structure import at_rate, find_structure
from bowtienet._old.model.shrinkage import FAMILIES

FIRST_SEED, TABLES = 500, 40
RATES = (0.05, 0.2)
WIDE_ROWS, WIDE_COLUMNS, WIDE_SHARE, WIDE_TABLES = 200, 2000, 0.005, 10
BART_TREES = 20
STUDY_KINDS = tuple(kind for kind in KINDS if kind != "linear")
Selections = dict[str, np.ndarray]
"""Selected columns, by the name of a method and its rate."""
Method = Callable[[Table, int], Selections]


def structure(table: Table, seed: int) -> Selections:
    """The default call, at all rates."""
    n_rows, n_columns = table.features.shape
    found = find_structure(
        table.features,
        range(n_columns),
        table.targets[:, None],
        np.ones(n_rows),
        [f"x{place}" for place in range(n_columns)],
        false_discovery_rate=RATES[0],
        seed=seed,
    )
    return {
        f"structure, rate {rate:g}": np.flatnonzero(at_rate(found, rate).selected) for rate in RATES
    }


def lasso(table: Table, seed: int) -> Selections:
    features = _standardized(table.features)
    model = LassoCV(cv=5, random_state=seed).fit(features, table.targets)
    return {"LassoCV": np.flatnonzero(model.coef_)}


def horseshoe(table: Table, seed: int) -> Selections:
    """Linear regression by coordinate ascent, with a shrinkage prior that has a pole at zero."""
    family = "horseshoe" if "horseshoe" in FAMILIES else "normal_gamma"
    inputs = _standardized(table.features)
    targets = _standardized(table.targets[:, None])
    architecture = engine.build_architecture(
        n_inputs=inputs.shape[1], hidden_layer_sizes=(), n_outputs=1
    )
    model = engine.default_model(architecture, inputs, targets, prior=family)
    rows = engine.build_rows(inputs, targets)
    fitted = engine.fit(model, rows, engine.initialize(model, rows, seed), max_iter=200)
    weights = fitted.factors.layers[0].weights
    mean = np.asarray(weights.mean)[0, 1:]
    deviation = np.sqrt(np.diagonal(np.asarray(weights.covariance)[0])[1:])
    return {f"linear, {family} prior": np.flatnonzero(np.abs(mean) > 1.96 * deviation)}


def permutation(table: Table, seed: int) -> Selections:
    """Importance of the columns for a default ensemble, on a fifth of the rows."""
    order = np.random.default_rng(seed).permutation(len(table.targets))
    test, train = np.split(order, [len(order) // 5])
    model = BowTieRegressor(effort="fast", random_state=seed)
    model.fit(table.features[train], table.targets[train])
    found = permutation_importance(
        model, table.features[test], table.targets[test], n_repeats=10, random_state=seed
    )
    return {
        "permutation importance": np.flatnonzero(
            found.importances_mean > 2.0 * found.importances_std
        )
    }


def bart(table: Table, seed: int) -> Selections:
    """Columns with more than twice the share of splits that each has on average."""
    from stochtree import BARTModel

    model = BARTModel()
    model.sample(
        X_train=table.features,
        y_train=table.targets,
        num_gfr=10,
        num_burnin=0,
        num_mcmc=200,
        general_params={"random_seed": seed},
        mean_forest_params={"num_trees": BART_TREES},
    )
    n_columns = table.features.shape[1]
    counts = np.asarray(model.forest_container_mean.get_overall_split_counts(n_columns))
    return {"BART split counts": np.flatnonzero(counts / counts.sum() > 2.0 / n_columns)}


METHODS: dict[str, Method] = {
    "structure": structure,
    "lasso": lasso,
    "horseshoe": horseshoe,
    "permutation": permutation,
    "bart": bart,
}


def scores(selected: np.ndarray, table: Table) -> tuple[float, float]:
    """Share of false columns among the selected ones, and of relevant ones that were found."""
    right = np.isin(selected, table.relevant)
    false = float(np.mean(~right)) if len(selected) else 0.0
    return false, float(right.sum() / len(table.relevant))


def run(kinds: Sequence[str], seeds: Sequence[int], methods: Sequence[str], out: Path) -> None:
    """Add the records that are not there yet."""
    known = {(r["kind"], r["seed"], r["run"]) for r in read(out)}
    for seed in seeds:
        for kind in kinds:
            for name in methods:
                if (kind, seed, name) in known:
                    continue
                table = _table(kind, seed)
                begin = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = METHODS[name](table, seed)
                seconds = time.process_time() - begin
                with out.open("a") as file:
                    for method, selected in found.items():
                        false, power = scores(selected, table)
                        record = {
                            "kind": kind,
                            "seed": seed,
                            "run": name,
                            "method": method,
                            "false": false,
                            "power": power,
                            "seconds": seconds,
                        }
                        file.write(json.dumps(record) + "\n")


def read(out: Path) -> list[dict]:
    """Records so far."""
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text().splitlines() if line.strip()]


def report(records: Sequence[dict]) -> str:
    """A Markdown table: share of false columns with its standard error / power, by kind."""
    frame = pd.DataFrame(records)
    kinds = [kind for kind in (*KINDS, "wide") if kind in set(frame["kind"])]
    lines = [
        "| method | " + " | ".join(kinds) + " | seconds |",
        "|---" * (len(kinds) + 2) + "|",
    ]
    for method in dict.fromkeys(frame["method"]):
        own = frame[frame["method"] == method]
        cells = []
        for kind in kinds:
            some = own[own["kind"] == kind]
            if some.empty:
                cells.append("")
                continue
            error = some["false"].std(ddof=0) / np.sqrt(len(some))
            cells.append(f"{some['false'].mean():.3f} ± {error:.3f} / {some['power'].mean():.2f}")
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {own['seconds'].mean():.1f} |")
    counts = frame.groupby("kind")["seed"].nunique()
    lines.append("")
    lines.append("Tables: " + ", ".join(f"{kind} {counts[kind]}" for kind in kinds) + ".")
    return "\n".join(lines)


def _table(kind: str, seed: int) -> Table:
    if kind == "wide":
        return planted_table("linear", WIDE_ROWS, WIDE_COLUMNS, WIDE_SHARE, seed)
    return table_of_study(kind, seed)


def _standardized(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    available = [m for m in METHODS if m != "bart" or importlib.util.find_spec("stochtree")]
    parser.add_argument("--kinds", nargs="+", default=list(STUDY_KINDS))
    parser.add_argument("--methods", nargs="+", default=available, choices=available)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--wide-tables", type=int, default=WIDE_TABLES)
    parser.add_argument("--out", type=Path, default=Path("structure.jsonl"))
    chosen = parser.parse_args(given)
    seeds = range(FIRST_SEED, FIRST_SEED + chosen.tables)
    run(chosen.kinds, seeds, chosen.methods, chosen.out)
    quick = [name for name in chosen.methods if name in ("structure", "lasso")]
    run(["wide"], range(FIRST_SEED, FIRST_SEED + chosen.wide_tables), quick, chosen.out)
    print(report(read(chosen.out)))


if __name__ == "__main__":
    main()
