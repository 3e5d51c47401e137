"""Pruning of an estimator: rows in, one smaller network out, with what it saves and loses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bowtienet._old.data.canonical import canonical_rows
from bowtienet._old.data.named_frames import new_frame
from bowtienet._old.data.source import Source
from bowtienet._old.ensemble.ensemble import Ensemble
from bowtienet._old.ensemble.fold_networks import FEWEST_ROWS
from bowtienet._old.ensemble.prune_ensemble import MOST_ROWS, PrunedEnsemble, prune_ensemble
from bowtienet._old.ensemble.settings import Settings
from bowtienet._old.ensemble.sparsity import sparsity
from bowtienet._old.estimators.known_columns import sampled_rows
from bowtienet._old.representation.representation import standardized_rows


@dataclass(frozen=True, kw_only=True)
class PruneSummary:
    """What pruning saves and what it loses; `print` shows it.

    Sizes are those of the ensemble and of the smaller network. Scores are out of fold, of the
    single network that the smaller one comes from and of the smaller one: of rows that these were
    not fitted to, in the unit of the target, averaged over targets.
    """

    columns: tuple[str, ...]
    """The user's columns."""
    kept: tuple[bool, ...]
    """Which of them the smaller network has weights of."""
    networks_before: int
    networks_after: int
    units_before: int
    units_after: int
    weights_before: int
    weights_after: int
    bytes_before: int
    """Of the file that `save` writes."""
    bytes_after: int
    rmse_before: float
    rmse_after: float
    nll_before: float
    nll_after: float
    seconds: float

    @property
    def columns_after(self) -> tuple[str, ...]:
        """Names of the columns that are left."""
        return tuple(name for name, kept in zip(self.columns, self.kept, strict=True) if kept)

    def to_frame(self, library: str = "pandas") -> Any:
        """Two rows, before and after pruning; sizes and scores are the columns."""
        pairs = {"columns": (len(self.columns), len(self.columns_after))}
        for name in ("networks", "units", "weights", "bytes", "rmse", "nll"):
            pairs[name] = (getattr(self, f"{name}_before"), getattr(self, f"{name}_after"))
        return new_frame({"pruning": ("before", "after"), **pairs}, library, index="pruning")

    def __str__(self) -> str:
        lines = ["ensemble -> pruned"]
        sizes = [
            ("columns", len(self.columns), len(self.columns_after)),
            ("networks", self.networks_before, self.networks_after),
            ("units", self.units_before, self.units_after),
            ("weights", self.weights_before, self.weights_after),
            ("file, kB", round(self.bytes_before / 1e3), round(self.bytes_after / 1e3)),
        ]
        lines += [f"{name:<10}{before:>9,} -> {after:,}" for name, before, after in sizes]
        lines.append("single network -> pruned, out of fold")
        for name in ("rmse", "nll"):
            before, after = getattr(self, f"{name}_before"), getattr(self, f"{name}_after")
            lines.append(f"{name.upper():<10}{before:>9.4g} -> {after:.4g}")
        gone = [name for name, kept in zip(self.columns, self.kept, strict=True) if not kept]
        lines.append(f"columns left: {', '.join(self.columns_after)}")
        lines.append(f"columns gone: {', '.join(gone) or 'none'}")
        lines.append(f"{self.seconds:.1f} s")
        return "\n".join(lines)


def pruned_of(
    estimator: Any, source: Source, settings: Settings, tolerance: float, seed: int
) -> PrunedEnsemble:
    """One smaller network for the rows of a source, of which at most `MOST_ROWS` are used."""
    representation = estimator.ensemble_.representation
    rows = canonical_rows(sampled_rows(estimator, source, MOST_ROWS, seed))
    rows = canonical_rows(standardized_rows(representation, rows))
    n_rows = rows.inputs.shape[0]
    if n_rows < FEWEST_ROWS:
        raise ValueError(
            f"X has {n_rows} different rows that count: prune needs at least {FEWEST_ROWS}, of "
            "which some are held out."
        )
    return prune_ensemble(estimator.ensemble_, rows, settings, tolerance, seed)


def summarize(before: Ensemble, found: PrunedEnsemble, n_bytes: tuple[int, int]) -> PruneSummary:
    """Sizes of two ensembles and of their files, and scores."""
    ensembles = (before, found.ensemble)
    old, new = map(sparsity, ensembles)
    return PruneSummary(
        columns=tuple(str(column.name) for column in before.representation.columns),
        kept=tuple(bool(kept) for kept in found.columns),
        networks_before=len(before.members),
        networks_after=len(found.ensemble.members),
        units_before=int(old.nodes_after.sum()),
        units_after=int(new.nodes_after.sum()),
        weights_before=int(old.weights_after.sum()),
        weights_after=int(new.weights_after.sum()),
        bytes_before=n_bytes[0],
        bytes_after=n_bytes[1],
        rmse_before=found.before.rmse,
        rmse_after=found.after.rmse,
        nll_before=found.before.nll,
        nll_after=found.after.nll,
        seconds=found.seconds,
    )
