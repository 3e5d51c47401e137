"""Model files: fitted pipelines that the command line wrote, or estimators that Python did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bowtienet._validation import listed_with_hints
from bowtienet.estimators.preparing import output_names
from bowtienet.estimators.table_pipeline import TablePipeline


def target_names(model: Any, given: Sequence[str] = ()) -> list[str]:
    """Names of the targets; those `given`, or y, or y0, y1, ..., for a model that knows none."""
    if isinstance(model, TablePipeline):
        return list(model.target_names_)
    if given:
        return list(given)
    return ["y"] if model.n_outputs_ == 1 else [f"y{i}" for i in range(model.n_outputs_)]


def inputs_of(model: Any, table: Any, label: str) -> Any:
    """The columns of a table that a model needs; all but targets for one that knows no names."""
    if isinstance(model, TablePipeline) and hasattr(model.preparer_, "feature_names_in_"):
        names = [column.name for column in model.preparer_.columns_ if output_names([column])]
    elif hasattr(model, "feature_names_in_"):
        names = [str(name) for name in model.feature_names_in_]
    else:
        return table.drop_columns([n for n in target_names(model) if n in table.column_names])
    missing = [name for name in names if name not in table.column_names]
    if missing:
        several = len(missing) > 1
        raise ValueError(
            f"{label} lacks the column{'s' if several else ''} "
            f"{listed_with_hints(missing, table.column_names)} that the model needs: add or rename "
            f"{'them' if several else 'it'}."
        )
    return table.select(names)


def prepared(model: Any, inputs: Any) -> Any:
    """Inputs as the network takes them."""
    return model[:-1].transform(inputs) if isinstance(model, TablePipeline) else inputs
