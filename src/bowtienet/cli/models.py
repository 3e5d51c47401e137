"""Model files: fitted pipelines that the command line wrote, or estimators that Python did."""

from __future__ import annotations

from typing import Any

from bowtienet.estimators.table_pipeline import TablePipeline


def network(model: Any) -> Any:
    """The fitted `BowTieRegressor` of a model."""
    return model.regressor_ if isinstance(model, TablePipeline) else model


def target_names(model: Any) -> list[str]:
    """Names of the targets; y, or y0, y1, ... where none are known."""
    if isinstance(model, TablePipeline):
        return list(model.target_names_)
    return ["y"] if model.n_outputs_ == 1 else [f"y{i}" for i in range(model.n_outputs_)]


def input_names(model: Any) -> list[str] | None:
    """Names of the columns that a model needs; None if it knows none."""
    if isinstance(model, TablePipeline):
        return [column.name for column in model.preparer_.columns_]
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def inputs_of(model: Any, table: Any, label: str) -> Any:
    """The columns of a table that a model needs."""
    if isinstance(model, TablePipeline):
        return table  # it finds its columns, and says what is missing
    names = input_names(model)
    if names is None:
        return table
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{label} lacks the column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing[:5]))} that the model needs: add or rename them."
        )
    return table.select(names)
